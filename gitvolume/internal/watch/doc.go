// Package watch turns the file-system events of a tree into hints: these paths may
// have changed, all below these directories may have, or anything may have. The
// events are those of github.com/rjeczalik/notify, which fails in silence:
//
//   - A watch that the kernel refuses (a limit, no inotify at all) is no error.
//   - The kernel's "queue overflow" is dropped, and so is what a full channel has no
//     room for.
//   - It learns of a directory from an event and watches it a moment later. What
//     happens in between announces nothing.
//   - It handles events in no order: a directory that is made, removed and made again
//     may end up without a watch.
//   - It does not learn that a directory moved away. A new directory of that name gets
//     no watch, and what happens below one that took the name of another is told with
//     an older path, for ever.
//   - A directory that cannot be read, or is gone meanwhile, ends the set-up of all
//     watches that were still to come.
//   - It keeps some 700 bytes for each name that a directory, with those below it, was
//     moved away from, for good, and for some of those that are made and removed at
//     once. A tree that had very many is not watched any more.
//   - It needs time with the square of the number of directories when they are removed
//     or their watches are, and a goroutine for each event that waits meanwhile.
//
// So an owner looks with its own eyes at what a hint names, and tells Check which
// directories it saw. Check compares them with the watches that the kernel really
// holds, and Watch sets all of them up anew when they are wrong. What cannot be made
// right is State's: the watch is degraded, and the owner scans.
//
// Not every change has an event: one made through a memory map, or through a hard
// link from elsewhere, has none. Found notices that too.
//
// notify follows a link that takes the place of a directory at the wrong moment, and then
// lists and watches directories that are outside of the tree: names from there become
// hints, and watches are used up for it. This package cannot prevent that, for it gives
// notify paths. Where Start is given a root on a mount with "nosymfollow" (Linux 5.10), it
// cannot happen; elsewhere nothing prevents it. A hint still reads and writes nothing
// outside, since the owner looks by handles that cannot leave the tree.
//
// The package must never read or write a file of the tree, never look at a directory
// by itself but when it looks for the root or for a directory that lacks its watch,
// and never run a timer: a quiet tree costs no processor time.
package watch
