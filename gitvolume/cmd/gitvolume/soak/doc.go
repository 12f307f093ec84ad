// Package soak holds the torture of `gitvolume node`, `make soak`: for a while applications
// write, others push to the same branches, pods come and go, and meanwhile the plugin is
// killed, the network, the disk, the git servers and the API server fail. Afterwards it is
// proved that nothing was lost, nothing was made twice, and nothing is left behind.
//
// The tests are behind the build tag soak: they take minutes, root and a loop device.
//
// It must never hold anything but tests, nor touch anything outside of the namespaces that
// it makes. It is apart from nodetest, since it wants a network and a disk of its own.
package soak
