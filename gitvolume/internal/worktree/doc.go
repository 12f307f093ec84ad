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
package worktree
