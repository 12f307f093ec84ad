// Package nodevolume is one writeable volume on a node: it brings the state machine of
// package writeable together with what the store has for it (record, tree, repository)
// and with the remote, and repairs what breaks below it.
//
// It must never follow a volume whose record names another repository or branch than is
// asked for, never put anything into a tree that is not the volume's, and never throw a
// tree or a broken repository away: they are set aside.
package nodevolume
