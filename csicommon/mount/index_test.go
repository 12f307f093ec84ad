package mount

import (
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// halted binds in the detached way and calls between when the clone has its id
// and is not attached yet.
type halted struct{ between func() }

func (h halted) bind(source, target *os.File, _ Options) error {
	tree, err := unix.OpenTree(int(source.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	h.between()
	return unix.MoveMount(tree, "", int(target.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

func TestIndexMissesNoBindThatOthersOvertook(t *testing.T) {
	for name, overtake := range map[string]func(t *testing.T, n *node){
		"by another mount that was caught up with": func(t *testing.T, n *node) {
			mustMount(t, n.volume(t, "w"), n.target(t, "w"), "", unix.MS_BIND)
			n.points(t, n.locate(t, n.volume(t, "w")))
		},
		"by another bind of ours": func(t *testing.T, n *node) {
			other := &node{System: System{log: n.System.log, binds: detached{}, table: n.table, asks: n.asks}}
			other.mustBind(t, n.volume(t, "w"), n.target(t, "w"), Options{})
		},
		"by a rescan": func(t *testing.T, n *node) {
			mustMount(t, n.volume(t, "w"), n.target(t, "w"), "", unix.MS_BIND)
			if err := n.Rescan(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNative(t)
			volume, target := n.volume(t, "v"), n.target(t, "v")
			n.binds = halted{func() { overtake(t, n) }}
			n.mustBind(t, volume, target, Options{})
			if points := n.points(t, n.locate(t, volume)); points[target] != 1 {
				t.Errorf("Showing found %v, want %q", points, target)
			}
			if points := n.points(t, n.locate(t, n.volume(t, "w"))); len(points) != 1 {
				t.Errorf("Showing found %v for the other", points)
			}
			x := n.table.(*index)
			if len(x.floors) != 0 {
				t.Errorf("%d floors are left", len(x.floors))
			}
		})
	}
}

func TestIndexKeepsWhatWasBoundDuringARescan(t *testing.T) {
	n := newNative(t)
	x := n.table.(*index)
	volume, target := n.volume(t, "v"), n.target(t, "v")
	begun := x.beginScan()
	// Read before the bind is there, taken over once it is.
	fresh, last := newKnown(), x.last
	n.mustBind(t, volume, target, Options{})
	x.takeOver(begun, fresh, last)
	if points := n.points(t, n.locate(t, volume)); points[target] != 1 {
		t.Errorf("Showing found %v, want %q", points, target)
	}
}

func TestIndexReadsAgainAfterItMissedABind(t *testing.T) {
	n := newNative(t)
	x := n.table.(*index)
	volume, target := n.volume(t, "v"), n.target(t, "v")
	n.mustBind(t, volume, target, Options{})
	m, _, err := n.At(target)
	if err != nil {
		t.Fatal(err)
	}
	// What a bind leaves behind when the kernel refused to list the mounts after it.
	x.known.drop(m.ID)
	x.missed++
	if points := n.points(t, n.locate(t, volume)); points[target] != 1 {
		t.Errorf("Showing found %v, want %q", points, target)
	}
	if x.needsRescan() {
		t.Error("the index still wants to be read again")
	}
}

// A directory renamed and looked up under its new name must be found under the
// old one again when it is renamed back.
func TestIndexFollowsARenameAndBack(t *testing.T) {
	n := newNative(t)
	volume, target := n.volume(t, "v"), n.target(t, "v")
	n.mustBind(t, volume, target, Options{})
	away := volume + ".away"
	for _, step := range []struct{ from, to string }{{volume, away}, {away, volume}, {volume, away}} {
		n.points(t, n.locate(t, step.from))
		if err := os.Rename(step.from, step.to); err != nil {
			t.Fatal(err)
		}
		if step.to == away {
			n.points(t, Location{Path: volume})
			if err := n.Rescan(); err != nil {
				t.Fatal(err)
			}
		}
		if points := n.points(t, n.locate(t, step.to)); points[target] != 1 {
			t.Errorf("after %s became %s: found %v, want %q", step.from, step.to, points, target)
		}
	}
}

// Nothing tells the index of mounts that go; it must not grow with all there ever were.
func TestIndexStaysSmall(t *testing.T) {
	n := newNative(t)
	x := n.table.(*index)
	volume, target := n.volume(t, "v"), n.target(t, "v")
	other := n.locate(t, n.volume(t, "other"))
	for range 3 * growthSlack {
		mustMount(t, volume, target, "", unix.MS_BIND)
		n.points(t, other)
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
	}
	if most := 2*mountCount(t) + growthSlack + 2; len(x.known.places) > most {
		t.Errorf("the index holds %d mounts, want at most %d", len(x.known.places), most)
	}
	for loc, ids := range x.known.ids {
		for id := range ids {
			if !slices.Contains(x.known.places[id], loc) {
				t.Fatalf("mount %d is filed under %+v and under %+v", id, loc, x.known.places[id])
			}
		}
	}
}

func TestStatmountOfAMountThatIsGone(t *testing.T) {
	n := newNative(t)
	target := n.target(t, "t")
	n.mustBind(t, n.volume(t, "v"), target, Options{})
	m, _, err := n.At(target)
	if err != nil {
		t.Fatal(err)
	}
	if same, found, err := statmount(m.ID); err != nil || !found || same != m {
		t.Errorf("mounted: %+v, %t, %v, want %+v", same, found, err, m)
	}
	n.mustUnbind(t, target)
	if m, found, err := statmount(m.ID); err != nil || found {
		t.Errorf("unmounted: %+v, %t, %v", m, found, err)
	}
}

func TestDecodeStatmountTrustsNoOffset(t *testing.T) {
	answer := func(mask uint64, root, point uint32, text string) []byte {
		b := make([]byte, offsetStrings, 1024)
		binary.NativeEndian.PutUint64(b[offsetMask:], mask)
		binary.NativeEndian.PutUint32(b[offsetRoot:], root)
		binary.NativeEndian.PutUint32(b[offsetPoint:], point)
		return append(b, text...)
	}
	if m, err := decodeStatmount(answer(statmountWanted, 0, 4, "/a/\x00/b\x00"), statmountWanted); err != nil || m.Path != "/a/" || m.Point != "/b" {
		t.Fatalf("a good answer: %+v, %v", m, err)
	}
	if m, err := decodeStatmount(answer(statmountWanted&^statmountPoint, 0, 1<<31, "/a/\x00"), statmountWanted); err != nil || m.Path != "/a/" || m.Point != "" {
		t.Fatalf("an answer without the point: %+v, %v", m, err)
	}
	for name, b := range map[string][]byte{
		"a part left out":         answer(statmountWanted&^statmountRoot, 0, 2, "/\x00/\x00"),
		"a string outside":        answer(statmountWanted, 0, 1<<31, "/\x00"),
		"a string without an end": answer(statmountWanted, 0, 2, "/\x00/b"),
	} {
		if m, err := decodeStatmount(b, statmountWanted); err == nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
}
