// Package worktree is the application's tree: what changed in it since it was last
// remembered, and the careful writing of what comes from upstream.
//
// The application is a stranger that writes below the root at any moment: it may swap
// directories for links, rename them while they are read, and plant files that block
// whoever opens them. So the package must never reach below the root but by a handle
// of the directory and one name, never follow a link, never enter a mount, never open
// anything for reading but a regular file, and never take a file for read that changed
// meanwhile. It must never need more memory or handles for a deeper tree than for a
// flat one, but for the names on the way down.
//
// What it does, in the order in which a volume needs it:
//   - Make and Open give the Tree, which all else works on (tree.go, checkout.go).
//   - Mover brings it to a commit, and finishes after a crash what it began (move*.go;
//     write*.go has the calls that change the disk). A Checkout is that for a read-only
//     volume.
//   - ReplayAll and ReplayPaths give files what the metadata says (replay*.go), and
//     GiveToGroup all to a volume mount group (group.go).
//   - Scan finds what is to be committed (scan*.go; read.go reads the files).
//   - Memory is what all of them know of the tree, and is passed from one to the next
//     (memory*.go).
//
// Each Tree is for one of these at a time.
package worktree
