package published_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/store"
)

func (n *node) recordOf(handle string) string {
	return filepath.Join(n.dir, "volumes", handle, "record.json")
}

// A record that cannot be written keeps no pod from going, and no volume after its last.
func TestUnpublishWhenNothingCanBeWritten(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	first, second := n.claimed("pv", "a", urlOf(b)).published(), n.claimed("pv", "b", urlOf(b)).published()
	// As with a full disk, nothing can be written beside the record.
	n.must(os.Mkdir(n.recordOf("pv")+".next", 0o700))
	n.must(os.Mkdir(filepath.Join(n.recordOf("pv")+".next", "x"), 0o700))
	first.unpublish()
	second.shows("f", "1")
	if got := second.faults(); got != "" {
		t.Errorf("the faults are %q", got)
	}
	second.unpublish()
	n.isEmpty()
	if len(n.cluster.followed) > 0 {
		t.Errorf("still followed: %v", n.cluster.followed)
	}
}

// A record that is damaged under a running driver takes nothing from the pods that stay.
func TestUnpublishWhenTheRecordIsDamaged(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	first, second := n.claimed("pv", "a", urlOf(b)).published(), n.claimed("pv", "b", urlOf(b)).published()
	n.must(os.WriteFile(n.recordOf("pv"), []byte("{"), 0o600))
	first.unpublish()
	b.Grow("main", "f", "2")
	n.demand("pv", "1")
	second.shows("f", "2")
	n.restart()
	second.published().shows("f", "2")
	second.unpublish()
	n.isEmpty()
}

// The record of a later driver is left to it, and a pod goes all the same.
func TestUnpublishOfARecordOfALaterDriver(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.claimed("pv", "a", urlOf(b)).published()
	n.stop()
	text, err := os.ReadFile(n.recordOf("pv"))
	n.must(err)
	later := strings.Replace(string(text), `"version": 1`, `"version": 99`, 1)
	n.must(os.WriteFile(n.recordOf("pv"), []byte(later), 0o600))
	n.start()
	if err := p.publish(); !errors.Is(err, store.ErrNewerRecord) {
		t.Errorf("publish: %v, want ErrNewerRecord", err)
	}
	p.unpublish()
	if err := unix.Access(p.target, unix.F_OK); !errors.Is(err, unix.ENOENT) {
		t.Errorf("the target is left: %v", err)
	}
	if kept, err := os.ReadFile(n.recordOf("pv")); err != nil || string(kept) != later {
		t.Errorf("the record is %q, %v", kept, err)
	}
}

// Pods go on seeing what a record named that is damaged, whoever else goes and however
// often the driver starts, until their volume can be published anew.
func TestATreeWhoseRecordIsLost(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p, other := n.claimed("pv", "a", urlOf(b)).published(), n.claimed("other", "b", urlOf(b)).published()
	n.stop()
	n.must(os.WriteFile(n.recordOf("pv"), []byte("{"), 0o600))
	n.must(os.Rename(b.Dir, b.Dir+".away"))
	n.start()
	if err := p.publish(); err == nil {
		t.Error("it is published without its remote")
	}
	other.unpublish()
	n.restart()
	p.shows("f", "1")
	n.must(os.Rename(b.Dir+".away", b.Dir))
	b.Grow("main", "f", "2")
	p.published().shows("f", "2")
	if n.mounts.binds > 0 {
		t.Errorf("%d binds, want the mount that the pod sees", n.mounts.binds)
	}
	p.unpublish()
	n.isEmpty()
}
