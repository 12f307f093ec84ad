package nodevolume_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

// TestModesOfBoth is C41 (g): both change nothing but the mode of a file, differently. That
// is no conflict of contents: nobody goes to a side branch, each tree keeps what its own
// application gave the file, with what upstream added to it, and the two do not push to and
// fro.
func TestModesOfBoth(t *testing.T) {
	t.Run("upstream's executable bit", func(t *testing.T) {
		t.Parallel()
		upstream := gittest.NewBare(t)
		put(t, upstream, "main", files{"f": "1"})
		p := newProcess(t, newDir(t))
		v := p.volume(wants(upstream.Dir)).publish()
		tip := upstream.Tip("refs/heads/main")
		blob := upstream.Git("rev-parse", "main:f")
		upstream.Import(fmt.Sprintf("commit refs/heads/main\ncommitter t <t@example.invalid> 1700000000 +0000\ndata 2\nup\nfrom %s\nM 100755 %s f\n", tip, blob))
		check(t, os.Chmod(filepath.Join(v.tree(), "f"), 0o600))
		v.write("own", "1")
		arrives(t, upstream, "main", files{"f": "1", "own": "1"})
		v.settles()
		v.modeIs("f", 0o700)
		v.stop()
		v.faultsAre()
		before := upstream.Refs()
		check(t, v.Publish(t.Context()))
		v.modeIs("f", 0o700)
		v.stop()
		if after := upstream.Refs(); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("the refs were %v and are %v, and nobody wrote", before, after)
		}
		p.end()
	})
	t.Run("two applications", func(t *testing.T) {
		t.Parallel()
		upstream := gittest.NewBare(t)
		put(t, upstream, "main", files{"f": "1"})
		var volumes []*volume
		for i := range 2 {
			p := newProcess(t, newDir(t))
			w := wants(upstream.Dir)
			w.handle = fmt.Sprintf("writer%d", i)
			volumes = append(volumes, p.volume(w).publish())
		}
		modes := []os.FileMode{0o640, 0o604}
		for i, v := range volumes {
			check(t, os.Chmod(filepath.Join(v.tree(), "f"), modes[i]))
		}
		for i, v := range volumes {
			v.settles()
			v.modeIs("f", modes[i])
			v.stop()
			v.faultsAre()
			v.p.end()
		}
		refs := upstream.Refs()
		if len(refs) != 2 {
			t.Errorf("the refs are %v, want main and the metadata", refs)
		}
		if got := upstream.Git("rev-list", "--count", "refs/git-csi/metadata"); got != "2" {
			t.Errorf("%s records, want one an application", got)
		}
	})
}

// settles waits until the remote has all of the volume, its record too.
func (v *volume) settles() {
	v.p.t.Helper()
	within(v.p.t, patience, func() bool {
		p := v.Position()
		return !p.Metadata.IsZero() && !p.Owes()
	}, func() string { return fmt.Sprintf("it is at %+v", v.Position()) })
}
