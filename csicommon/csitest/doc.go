// Package csitest is the roof over what the tests of both drivers share: a
// stand-in kubelet, csi-sanity, an API server in memory, private mount
// namespaces, a network that can be cut, a log to look at, programs to start, what they
// leave behind, a node with a plugin and the comparison of what users read, each in a package
// of its own below it.
//
// Nothing below it may ever be linked into a driver.
package csitest
