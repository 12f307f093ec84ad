// Package published is the read-only volumes that this node shows to pods: where they are
// mounted, for which pods, with which Secrets, and what the cluster says about them. It
// brings the trees of package readonly and the kubelet's targets together.
//
// It must never show a tree that can be written through its mount; never ask the disk, a
// remote or the API server anything when a publish is only repeated; never touch a mount
// when the driver restarts; and never forget a volume that is still mounted. It knows no
// CSI.
package published
