package mount

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// withOthers adds that many mounts of other volumes to the namespace.
func withOthers(b *testing.B, n *node, count int) {
	b.Helper()
	dir := newFilesystem(b)
	mustMount(b, "none", dir, "", unix.MS_PRIVATE)
	volume := n.volume(b, "others")
	for i := range count {
		mustMount(b, volume, mkdir(b, filepath.Join(dir, strconv.Itoa(i))), "", unix.MS_BIND)
	}
}

// each runs a benchmark on both implementations beside 50 and 5,000 other mounts.
func each(b *testing.B, bench func(b *testing.B, n *node)) {
	for name, make := range map[string]func(testing.TB) *node{"native": newNative, "classic": newClassic} {
		for _, others := range []int{50, 5000} {
			b.Run(name+"/others="+strconv.Itoa(others), func(b *testing.B) {
				n := make(b)
				withOthers(b, n, others)
				if err := n.Rescan(); err != nil {
					b.Fatal(err)
				}
				bench(b, n)
			})
		}
	}
}

func BenchmarkBindUnbind(b *testing.B) {
	each(b, func(b *testing.B, n *node) {
		// Not on disk, as making the target again there takes most of the time.
		n.kubelet = newFilesystem(b)
		target, source := n.target(b, "t"), handle(b, n.volume(b, "v"))
		for b.Loop() {
			if err := errors.Join(n.Bind(source, target, Options{ReadOnly: true}), n.Unbind(target), os.Mkdir(target, 0o700)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkShowing(b *testing.B) {
	each(b, func(b *testing.B, n *node) {
		volume, target := n.volume(b, "v"), n.target(b, "t")
		n.mustBind(b, volume, target, Options{})
		loc := n.locate(b, volume)
		for b.Loop() {
			if mounts, err := n.Showing(loc); err != nil || len(mounts) != 1 {
				b.Fatal(mounts, err)
			}
		}
	})
}

func BenchmarkIsMount(b *testing.B) {
	each(b, func(b *testing.B, n *node) {
		target := n.target(b, "t")
		n.mustBind(b, n.volume(b, "v"), target, Options{})
		for b.Loop() {
			if mounted, err := n.IsMount(target); err != nil || !mounted {
				b.Fatal(mounted, err)
			}
		}
	})
}

func BenchmarkLocate(b *testing.B) {
	each(b, func(b *testing.B, n *node) {
		dir := handle(b, n.volume(b, "v"))
		for b.Loop() {
			if _, err := n.Locate(dir); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkRescan(b *testing.B) {
	each(b, func(b *testing.B, n *node) {
		for b.Loop() {
			if err := n.Rescan(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
