package writeable_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/report"
)

// A file that the application made immutable stays, whatever upstream makes of it. All else is
// committed, the stop too, and the volume is back on its ref once it may be changed.
func TestImmutableFile(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.fix("b", true)
		defer n.fix("b", false)
		w.put("main", files{"b": "2"})
		n.write("a", "2")
		n.settle(time.Minute)
		n.faultsAre(report.Diverged)
		n.has(files{"a": "2", "b": "1"})
		w.remoteHas("main", files{"a": "1", "b": "2"})
		n.write("a", "3")
		n.stop()
		w.remoteHas(side, files{"a": "3", "b": "1"})
		n.publish()
		n.has(files{"a": "3", "b": "1"})
		n.fix("b", false)
		w.put("main", files{"a": "3"}) // Somebody takes it over.
		n.write("a", "4")
		n.settle(time.Minute)
		n.faultsAre()
		w.remoteHas("main", files{"a": "4", "b": "2"})
		n.stop()
	})
}

// fix makes a file immutable, or one like others again.
func (n *node) fix(path string, fixed bool) {
	n.t.Helper()
	const immutable = 0x10 // FS_IMMUTABLE_FL of linux/fs.h.
	file, err := os.Open(filepath.Join(n.tree(), path))
	if err != nil {
		n.t.Fatal(err)
	}
	defer file.Close()
	flags, err := unix.IoctlGetInt(int(file.Fd()), unix.FS_IOC_GETFLAGS)
	if flags &^= immutable; fixed {
		flags |= immutable
	}
	if err == nil {
		err = unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, flags)
	}
	if err != nil {
		n.t.Skipf("setting flags on this file system and as this user: %v", err)
	}
}
