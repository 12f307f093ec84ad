// Package nodetest holds the tests of `gitvolume node` as the process that it is, with real
// mounts, repositories and sockets.
//
// It must never hold anything but tests. They are apart from those of the command, since
// mounting wants a namespace in which an ordinary user is root, and there sshd, which those
// of `gitvolume watch` ask, does not work.
package nodetest
