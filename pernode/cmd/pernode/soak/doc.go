// Package soak tortures `pernode` as the process that it is, for as long as one likes: `make
// soak`. Pods come and go at random, several at once, and write; PersistentVolumes are made
// and deleted; meanwhile the plugin is killed and started again, the disk fills up, the API
// server is away, answers errors or is that of another cluster, and mounts are taken away as
// by a reboot. After each round everything must be as the answers and the pods' writes say.
//
// The tests are behind the build tag soak: they take minutes, root and a loop device. The
// seed decides on every operation and fault and their order; how the operations of different
// volumes and the faults meet is up to timing, so a seed repeats a run roughly.
//
// The package must never hold anything but tests, mount outside of its own namespace, or be
// satisfied with less than the drivers promise because something was hard at the time.
package soak
