package watch

import (
	"strings"
	"time"

	"github.com/rjeczalik/notify"
	"golang.org/x/sys/unix"
)

// note makes an event a pending hint, and returns by how many directories there are more.
// w.mu is held.
func (w *Watch) note(event notify.EventInfo) (more int) {
	path, below := w.relative(event.Path())
	sys, known := event.Sys().(*unix.InotifyEvent)
	if !below || !known {
		w.pending.addEverything()
		return 0
	}
	directory := sys.Mask&unix.IN_ISDIR != 0
	switch {
	case directory && sys.Mask&unix.IN_MOVED_FROM != 0:
		// All that is known of it, here and in notify, goes by a name that is gone. Where
		// it went, if that is in the tree, notify may keep telling it by the old name.
		w.stale = true
		w.names.learn(w.names.hash(path))
		w.pending.addEverything()
	case directory && sys.Mask&(unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_DELETE) != 0:
		switch hash, now := w.names.hash(path), time.Now(); {
		case sys.Mask&unix.IN_DELETE != 0:
			w.names.forget(hash, now)
			more = -1
		case sys.Mask&unix.IN_CREATE != 0:
			w.names.make(hash, now)
			more = 1
		}
		w.pending.addSubtree(path)
		w.addSettling(path)
	default:
		w.pending.addPath(path)
	}
	// What a look found may have come before its event.
	for found := range w.unannounced {
		if w.pending.covers(found) {
			delete(w.unannounced, found)
		}
	}
	return more
}

// relative is path as the root sees it.
func (w *Watch) relative(path string) (relative string, below bool) {
	rest, below := strings.CutPrefix(path, w.path)
	if below && rest == "" {
		return ".", true
	}
	return strings.CutPrefix(rest, "/")
}
