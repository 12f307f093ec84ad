// Package gittest gives tests real servers to talk to: OpenSSH's sshd, git's own HTTP
// backend and servers that misbehave, on loopback addresses; the bare repositories that
// they serve; and a search for secrets in every place where a child or a disk could
// have kept one.
//
// It must never be linked into a driver, and never leave a process behind.
package gittest
