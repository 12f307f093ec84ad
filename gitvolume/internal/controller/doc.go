// Package controller is the CSI Controller service of the git driver, as the resizer and
// the provisioner of Kubernetes call it: it says whether a VolumeAttributesClass can be
// used, lets a PersistentVolume be deleted, and tells who asks for a volume to be made what
// to write instead.
//
// It must never change anything: volumes are on the nodes, which go by the
// PersistentVolume themselves. It asks nobody, and knows of no volume but what a request
// says.
package controller
