package watch

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rjeczalik/notify"
	"golang.org/x/sys/unix"
)

// A change through another name of the file has no event at the name in the tree.
func TestUnannouncedChange(t *testing.T) {
	dir := t.TempDir()
	root, elsewhere := filepath.Join(dir, "root"), filepath.Join(dir, "elsewhere")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "f"), "1")
	if err := os.Link(filepath.Join(root, "f"), elsewhere); err != nil {
		t.Fatal(err)
	}
	o := start(t, New(), root)
	defer o.w.Stop()
	o.calm()
	write(t, elsewhere, "x2")
	o.scan()
	if state := o.w.State(); state.Degraded {
		t.Fatalf("the event may be on its way: %+v", state)
	}
	waitFor(t, "the watch is degraded", func() bool { return o.w.State().Degraded })
	before := o.w.State()
	write(t, elsewhere, "x3456")
	o.scan()
	if state := o.w.State(); state != before {
		t.Fatalf("%+v became %+v when a scan found another", before, state)
	}
	o.scan()
	if state := o.w.State(); state != (State{}) {
		t.Fatalf("a scan found nothing, but %+v", state)
	}
}

func TestFound(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	age := func(w *Watch) {
		for path := range w.unannounced {
			w.unannounced[path] = long
		}
		if !w.unnamed.IsZero() {
			w.unnamed = long
		}
	}
	announced := pending{paths: map[string]struct{}{"p": {}}, subtrees: map[string]struct{}{"s": {}}}
	for name, test := range map[string]struct {
		pending pending
		hint    Hint
		path    string
		missed  bool
	}{
		"nothing announced it":          {pending{}, Hint{}, "p", true},
		"the hint named it":             {pending{}, announced.hint(), "p", false},
		"the hint named its directory":  {pending{}, announced.hint(), "s/a/b", false},
		"the hint was everything":       {pending{}, (&pending{everything: true}).hint(), "x", false},
		"another was announced":         {pending{}, announced.hint(), "x", true},
		"its event came after the look": {announced, Hint{}, "p", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Watch{pending: test.pending, unannounced: map[string]time.Time{}}
			w.Found(test.hint, test.path)
			age(w)
			if state := w.State(); state.Degraded != test.missed {
				t.Errorf("%+v", state)
			}
		})
	}

	t.Run("its event comes", func(t *testing.T) {
		w := &Watch{root: "/r", path: "/r", unannounced: map[string]time.Time{}}
		w.Found(Hint{}, "d/f")
		w.Found(Hint{}, "d/g")
		age(w)
		w.note(event{path: "/r/d/f", mask: unix.IN_MODIFY})
		if !w.State().Degraded {
			t.Error("the other's event did not come")
		}
		w.note(event{path: "/r/d/g", mask: unix.IN_MODIFY})
		if state := w.State(); state.Degraded {
			t.Errorf("%+v", state)
		}
	})

	t.Run("a great many", func(t *testing.T) {
		w := &Watch{unannounced: map[string]time.Time{}}
		for i := range 10 * mostUnannounced {
			w.Found(Hint{}, strconv.Itoa(i))
		}
		if len(w.unannounced) > mostUnannounced {
			t.Fatalf("%d are kept", len(w.unannounced))
		}
		clear(w.unannounced)
		age(w)
		if !w.State().Degraded {
			t.Error("those without room are forgotten")
		}
	})
}

// Events that may be lost make the watch degraded until everything was looked at.
func TestLostEvents(t *testing.T) {
	root := t.TempDir()
	trees := New()
	o := start(t, trees, root)
	defer o.w.Stop()
	o.calm()
	trees.flooded()
	if state := o.w.State(); !state.Degraded || state.Reason == "" {
		t.Fatalf("%+v", state)
	}
	h := o.w.Take()
	if !h.Everything {
		t.Fatalf("%+v", h)
	}
	self, err := inodeOf(root)
	if err != nil {
		t.Fatal(err)
	}
	dirs := maps.All(map[string]Inode{".": self})
	// More were lost after the hint was taken.
	trees.flooded()
	o.w.Check(h, dirs)
	if state := o.w.State(); !state.Degraded {
		t.Fatalf("%+v", state)
	}
	o.w.Check(o.w.Take(), dirs)
	if state := o.w.State(); state != (State{}) {
		t.Fatalf("%+v", state)
	}
}

// A channel that fills up is everything, one that is full has lost events.
func TestFullChannel(t *testing.T) {
	for waiting, want := range map[int]struct{ everything, degraded bool }{
		room/2 - 1: {false, false}, room / 2: {true, false}, room - 1: {true, true},
	} {
		trees := New()
		w := &Watch{trees: trees, root: "/r", ready: make(chan struct{}, 1)}
		trees.watches[w] = struct{}{}
		w.receive(event{path: "/r/f", mask: unix.IN_MODIFY}, waiting)
		if got := w.pending.everything; got != want.everything {
			t.Errorf("%d waiting: everything %t", waiting, got)
		}
		if got := w.State().Degraded; got != want.degraded {
			t.Errorf("%d waiting: degraded %t", waiting, got)
		}
	}
}

// Watches that take long to set up are not set up all the time.
func TestPutOff(t *testing.T) {
	root := t.TempDir()
	o := start(t, New(), root)
	defer o.w.Stop()
	o.calm()
	o.w.renewCost = time.Hour
	o.w.note(event{path: root + "/d", mask: unix.IN_MOVED_FROM | unix.IN_ISDIR})
	h := o.w.Take()
	if state := o.w.State(); h.renewed || !state.Degraded {
		t.Fatalf("%+v, %+v", h, state)
	}
	o.look(h)
	if state := o.w.State(); !state.Degraded {
		t.Fatalf("a scan repairs no watch: %+v", state)
	}
	o.w.renewCost = 0
	o.scan()
	if state := o.w.State(); state != (State{}) {
		t.Fatalf("%+v", state)
	}
}

// event stands in for notify's.
type event struct {
	path string
	mask uint32
}

func (e event) Event() notify.Event { return 0 }
func (e event) Path() string        { return e.path }
func (e event) Sys() any            { return &unix.InotifyEvent{Mask: e.mask} }
