// Package bench holds the benchmarks of the plugins as they run on a node: the
// real binary, called over its socket by a stand-in kubelet, in a mount namespace
// of its own as in a container, beside what CSI drivers commonly use instead
// (k8s.io/mount-utils, which runs mount(8) and umount(8)).
//
// Both are measured in one run and by turns, so that a machine that slows down
// slows both. The figures are reported, and must never fail a build: they are
// those of the machine they were taken on.
package bench
