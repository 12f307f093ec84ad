// Package published is the volumes that this node shows to pods: where they are mounted,
// for which pods, with which Secrets, and what the cluster says about them. It brings the
// trees of the packages readonly and written together with the kubelet's targets.
//
// It must never show a read-only volume's tree so that it can be written through its mount,
// nor a writeable volume's at two targets; never ask the disk, a remote or the API server
// anything when a publish is only repeated; never touch a mount when the driver restarts;
// and never forget a volume that is still mounted, or a tree that was written. It knows no
// CSI.
package published
