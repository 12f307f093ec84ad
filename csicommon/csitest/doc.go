// Package csitest is the roof over what the tests of both drivers share: a
// stand-in kubelet, csi-sanity, an API server in memory and private mount
// namespaces, each in a package of its own below it.
//
// Nothing below it may ever be linked into a driver.
package csitest
