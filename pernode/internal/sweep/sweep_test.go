package sweep

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/pernode/internal/copies"
)

const driver = "per-node.liken.sh"

// node is a fake store: copies by handle, and who holds them.
type node struct {
	mu        sync.Mutex
	copies    []string
	held      map[string]copies.Hold
	cluster   string
	listErr   error
	holdsErr  error
	removeErr error
	hang      chan struct{} // what h1's disk waits for
	lock      chan struct{} // what a removal waits for
}

func (n *node) List() ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.copies), n.listErr
}

func (n *node) Holder(volume string) (copies.Hold, bool, error) {
	if n.hang != nil && volume == "h1" {
		<-n.hang
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	hold, held := n.held[volume]
	return hold, held, nil
}

func (n *node) Holds() ([]string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.held)), n.holdsErr
}

func (n *node) Hold(volume string) (copies.Hold, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	hold, held := n.held[volume]
	return hold, held
}

func (n *node) Remove(_ context.Context, volume string, confirm func() error) error {
	if _, held, _ := n.Holder(volume); held {
		return copies.ErrHeld
	}
	if n.lock != nil {
		<-n.lock
	}
	if err := confirm(); err != nil {
		return err
	}
	if n.removeErr != nil {
		return n.removeErr
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.copies = slices.DeleteFunc(n.copies, func(c string) bool { return c == volume })
	return nil
}

func (n *node) Cluster() (string, error) {
	if n.cluster == "lost" {
		return "", copies.ErrClusterLost
	}
	return n.cluster, nil
}

func (n *node) SetCluster(uid string) error { n.cluster = uid; return nil }

// api is a fake cluster whose watches are always up to date.
type api struct {
	uid      string
	volumes  map[string]persistentvolume.Volume // by PV name
	unknown  map[string]bool                    // names whose watch has not answered
	followed map[string]bool
	err      error
	lists    int
	onList   func()          // called between the list and its return
	absent   map[string]bool // names whose watch has not seen them come back
}

func (a *api) Follow(name string)   { a.followed[name] = true }
func (a *api) Unfollow(name string) { delete(a.followed, name) }

func (a *api) Get(name string) (persistentvolume.Volume, persistentvolume.State) {
	v, exists := a.volumes[name]
	switch {
	case !a.followed[name] || a.unknown[name]:
		return persistentvolume.Volume{}, persistentvolume.Unknown
	case !exists, a.absent[name]:
		return persistentvolume.Volume{}, persistentvolume.Absent
	}
	return v, persistentvolume.Present
}

func (a *api) Read(_ context.Context, name string) (persistentvolume.Volume, bool, error) {
	v, exists := a.volumes[name]
	return v, exists, a.err
}

func (a *api) Confirm(_ context.Context, cluster, driver string) ([]persistentvolume.Volume, error) {
	a.lists++
	if a.err != nil {
		return nil, a.err
	}
	if cluster != a.uid {
		return nil, persistentvolume.ErrOtherCluster
	}
	var ours []persistentvolume.Volume
	for _, v := range a.volumes {
		if v.Driver == driver {
			ours = append(ours, v)
		}
	}
	if a.onList != nil {
		a.onList()
	}
	return ours, nil
}

func (a *api) Cluster(context.Context) (string, error) { return a.uid, a.err }

func (a *api) put(name, handle string) {
	a.volumes[name] = persistentvolume.Volume{Name: name, Driver: driver, Handle: handle}
}

type fixture struct {
	*Sweeper
	node *node
	api  *api
}

func newFixture(all ...string) *fixture {
	f := &fixture{
		node: &node{copies: all, held: map[string]copies.Hold{}, cluster: "uid-1"},
		api: &api{uid: "uid-1", volumes: map[string]persistentvolume.Volume{},
			unknown: map[string]bool{}, followed: map[string]bool{}},
	}
	f.Sweeper = New(Config{
		Driver: driver, Every: 10 * time.Minute, Store: f.node, Cluster: f.api,
		Removed: func(string) {}, Log: slog.New(slog.DiscardHandler),
	})
	return f
}

func (f *fixture) left() string { all, _ := f.node.List(); return strings.Join(all, " ") }

func TestSweep(t *testing.T) {
	for _, row := range []struct {
		name  string
		setUp func(f *fixture)
		left  string
		lists int // confirming reads of the cluster that are right
	}{
		{"named by the custom name", func(f *fixture) { f.api.put("h1", "h1") }, "h1", 0},
		{"gone", func(*fixture) {}, "", 1},
		{"named by another name", func(f *fixture) { f.api.put("pv-7", "h1") }, "h1", 1},
		{"two name it, one gone", func(f *fixture) {
			f.Wanted("h1", "pv-1")
			f.api.put("pv-2", "h1")
		}, "h1", 1},
		{"another driver's of that handle", func(f *fixture) {
			f.api.volumes["h1"] = persistentvolume.Volume{Name: "h1", Driver: "other.example", Handle: "h1"}
		}, "", 1},
		{"custom name, another handle", func(f *fixture) { f.api.put("h1", "h2") }, "", 1},
		{"being deleted", func(f *fixture) {
			f.api.volumes["h1"] = persistentvolume.Volume{Name: "h1", Driver: driver, Handle: "h1", Deleting: true}
		}, "h1", 0},
		{"held", func(f *fixture) { f.node.held["h1"] = copies.Hold{PodName: "p"} }, "h1", 0},
		{"not read yet", func(f *fixture) { f.api.unknown["h1"] = true }, "h1", 0},
		{"the read fails", func(f *fixture) { f.api.err = errors.New("page 2: connection reset") }, "h1", 1},
		{"another cluster", func(f *fixture) { f.api.uid = "uid-2" }, "h1", 1},
		{"made again during the read", func(f *fixture) {
			f.api.onList = func() { f.api.put("h1", "h1") }
		}, "h1", 1},
		{"published during the read", func(f *fixture) {
			f.api.onList = func() { f.Wanted("h1", "pv-new") }
		}, "h1", 1},
		{"published without a name during the read", func(f *fixture) {
			f.api.onList = func() { f.Wanted("h1", ""); f.Wanted("h2", ""); f.api.put("pv-2", "h2") }
		}, "h1", 1},
		{"held since the read", func(f *fixture) {
			f.api.onList = func() { f.node.held["h1"] = copies.Hold{PodName: "p"} }
		}, "h1", 1},
		{"the live look fails", func(f *fixture) {
			f.api.onList = func() { f.api.err = errors.New("timeout") }
		}, "h1", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFixture("h1")
			row.setUp(f)
			f.sweep(t.Context())
			if left := f.left(); left != row.left {
				t.Errorf("left %q, want %q", left, row.left)
			}
			if f.api.lists != row.lists {
				t.Errorf("%d complete reads, want %d", f.api.lists, row.lists)
			}
		})
	}
}

func TestANamedNodeAsksNothing(t *testing.T) {
	f := newFixture("h1", "h2")
	f.api.put("pv-1", "h1")
	f.api.put("h2", "h2")
	for range 5 {
		f.sweep(t.Context())
	}
	if f.api.lists != 1 { // the one that found pv-1
		t.Errorf("%d complete reads, want 1", f.api.lists)
	}
	if f.api.followed["h1"] || !f.api.followed["pv-1"] || !f.api.followed["h2"] {
		t.Errorf("followed %v, want pv-1 and h2", f.api.followed)
	}
}

// A copy that cannot be removed must not make each unpublish of another volume
// read the whole cluster.
func TestAFailedRemovalWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture("h1", "h2")
		f.api.put("h2", "h2")
		f.node.removeErr = errors.New("operation not permitted")
		for range 20 {
			f.sweep(t.Context())
			f.Released("h2")
		}
		if f.api.lists != 1 || len(f.poked) != 0 {
			t.Errorf("%d complete reads, poked %d times", f.api.lists, len(f.poked))
		}
		f.node.removeErr = nil
		time.Sleep(10 * time.Minute)
		f.Released("h1")
		f.sweep(t.Context())
		if f.left() != "h2" || len(f.poked) != 1 {
			t.Errorf("left %q, poked %d times", f.left(), len(f.poked))
		}
	})
}

// A copy can be on a disk of its own, which hangs.
func TestAHungCopyKeepsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture("h1", "h2")
		f.node.hang = make(chan struct{})
		for range 3 {
			f.sweep(t.Context())
		}
		if f.left() != "h1" || f.Figures().Failures != 3 {
			t.Errorf("left %q, %+v", f.left(), f.Figures())
		}
		f.Wanted("h3", "pv-3") // waits for no disk
		close(f.node.hang)
		synctest.Wait()
		f.sweep(t.Context())
		if f.left() != "" {
			t.Errorf("after the disk answered: %q", f.left())
		}
	})
}

// A removal that waits for the volume's lock must not go on what was confirmed
// long ago.
func TestARemovalThatWaitedTooLongDoesNotHappen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture("h1")
		f.node.lock = make(chan struct{})
		f.sweep(t.Context())
		if f.Figures().Failures != 1 {
			t.Errorf("%+v, want a failure", f.Figures())
		}
		f.api.put("h1", "h1")
		time.Sleep(time.Hour)
		close(f.node.lock)
		synctest.Wait()
		if f.left() != "h1" {
			t.Error("a copy was removed that a PersistentVolume names again")
		}
	})
}

func TestAWatchThatLagsBehindTheListIsKept(t *testing.T) {
	f := newFixture("h1")
	f.api.absent = map[string]bool{"h1": true}
	f.api.put("h1", "h1")
	f.sweep(t.Context())
	if f.left() != "h1" || !f.api.followed["h1"] {
		t.Errorf("left %q, followed %v", f.left(), f.api.followed)
	}
}

// A name that was asked for and refused is watched only by the next sweep.
func TestARefusedNameIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture("h1")
		f.api.put("h1", "h1")
		f.sweep(t.Context())
		f.Wanted("h1", "pv-2")
		f.api.put("pv-2", "h1")
		f.api.unknown["pv-2"] = true
		time.Sleep(2 * unreadGrace)
		f.sweep(t.Context())
		if f.Figures().Failures != 0 {
			t.Errorf("%+v, want no failure", f.Figures())
		}
	})
}

func TestWatchesGoWithTheirCopies(t *testing.T) {
	f := newFixture("h1", "h2")
	f.Wanted("h1", "shared")
	f.api.put("shared", "h1")
	f.api.put("h2", "h2")
	f.sweep(t.Context())
	delete(f.api.volumes, "shared")
	delete(f.api.volumes, "h2")
	f.sweep(t.Context())
	if f.left() != "" || len(f.api.followed) != 0 {
		t.Errorf("left %q, followed %v", f.left(), f.api.followed)
	}
	if got := f.Figures(); got.Removed != 2 || got.Failures != 0 || got.Last.IsZero() {
		t.Errorf("Figures = %+v", got)
	}
}

// A plugin may be started while a copy is moved aside under its pod. When it is put
// back, the deletion of its PersistentVolume has to be known at once.
func TestACopyMovedAsideIsWatched(t *testing.T) {
	f := newFixture()
	f.node.held["h1"] = copies.Hold{PodName: "p", PV: "pv-1"}
	f.api.put("pv-1", "h1")
	f.sweep(t.Context())
	if !f.api.followed["pv-1"] {
		t.Fatalf("followed %v, want pv-1", f.api.followed)
	}
	f.node.copies = []string{"h1"}
	delete(f.api.volumes, "pv-1")
	delete(f.node.held, "h1")
	f.Released("h1")
	if len(f.poked) != 1 {
		t.Fatal("its pod is gone, and no sweep is made")
	}
	f.sweep(t.Context())
	if f.left() != "" || len(f.api.followed) != 0 {
		t.Errorf("left %q, followed %v", f.left(), f.api.followed)
	}
}

func TestUnlistedHoldsKeepNoCopy(t *testing.T) {
	f := newFixture("h1")
	f.node.holdsErr = errors.New("input/output error")
	f.sweep(t.Context())
	if got := f.Figures(); got.Failures != 1 || f.left() != "" {
		t.Errorf("left %q, Figures = %+v, want 1 failure", f.left(), got)
	}
}

func TestFailuresAreCounted(t *testing.T) {
	f := newFixture("h1")
	f.node.listErr = errors.New("input/output error")
	f.sweep(t.Context())
	f.node.listErr, f.api.err = nil, errors.New("no API")
	f.sweep(t.Context())
	if got := f.Figures(); got.Failures != 2 || !got.Last.IsZero() {
		t.Errorf("Figures = %+v, want 2 failures and no sweep", got)
	}
}

// A missing RBAC rule shows as PersistentVolumes that are never read.
func TestAPersistentVolumeThatIsNeverReadIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture("h1")
		f.api.unknown["h1"] = true
		f.sweep(t.Context())
		if got := f.Figures(); got.Failures != 0 {
			t.Errorf("within the grace: %+v", got)
		}
		time.Sleep(unreadGrace + time.Second)
		f.sweep(t.Context())
		if got := f.Figures(); got.Failures != 1 || f.left() != "h1" {
			t.Errorf("after the grace: %+v, left %q", got, f.left())
		}
		delete(f.api.unknown, "h1")
		f.api.put("h1", "h1")
		f.sweep(t.Context())
		if got := f.Figures(); got.Failures != 1 || got.Last.IsZero() {
			t.Errorf("once it was read: %+v", got)
		}
	})
}

func TestRunSweepsOnTimeAndWhenPoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture("h1", "h2")
		f.api.put("h1", "h1")
		f.api.put("h2", "h2")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { f.Run(ctx); close(ended) }()
		synctest.Wait()
		delete(f.api.volumes, "h1")
		f.Changed("h1")
		synctest.Wait()
		if f.left() != "h2" {
			t.Errorf("after a deletion: %q", f.left())
		}
		delete(f.api.volumes, "h2")
		time.Sleep(9 * time.Minute)
		if f.left() != "h2" {
			t.Errorf("before its time: %q", f.left())
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if f.left() != "" {
			t.Errorf("after its time: %q", f.left())
		}
		cancel()
		<-ended
	})
}

func TestTheStoreLearnsItsClusterOnce(t *testing.T) {
	for _, row := range []struct {
		recorded, answers string
		adopt             bool
		want              string
		swept             bool
	}{
		{"", "uid-1", false, "uid-1", true},
		{"uid-1", "uid-1", false, "uid-1", true},
		{"uid-1", "uid-2", false, "uid-1", false},
		{"standalone", "uid-2", false, "standalone", false},
		{"uid-1", "uid-2", true, "uid-2", true},
		{"lost", "uid-1", false, "lost", false},
		{"lost", "uid-1", true, "uid-1", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture("h1")
			f.node.cluster, f.api.uid, f.config.AdoptStore = row.recorded, row.answers, row.adopt
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			f.Run(ctx)
			if f.node.cluster != row.want {
				t.Errorf("%+v: recorded %q", row, f.node.cluster)
			}
			if swept := f.left() == ""; swept != row.swept {
				t.Errorf("%+v: swept %t", row, swept)
			}
			if reported := f.Figures().Failures > 0; reported == row.swept {
				t.Errorf("%+v: failures %d", row, f.Figures().Failures)
			}
		})
	}
}
