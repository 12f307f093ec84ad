// Package history is a volume's side of the repository: it turns changed paths into
// blobs, trees and commits, replays commits on another tip, tells how two tips
// relate, and moves the store's refs. It works on objects with libgit2, in process,
// at a cost that follows what changed and not the size of the tree.
//
// What it reads was written by strangers and what it writes is pushed to servers that
// check: it must never crash or run out of memory over an object, and never write one
// that `git fsck --strict` refuses. A ref must never name an object that a power cut
// could still take away.
//
// It must never read or write an application's tree, use the network or start a
// process.
package history
