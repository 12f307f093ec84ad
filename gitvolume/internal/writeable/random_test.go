package writeable_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
)

// event is one thing that somebody does.
type event struct {
	what, path, content string
	wait                time.Duration
}

func (e event) String() string {
	return fmt.Sprintf("%s %s %q, then %s", e.what, e.path, e.content, e.wait)
}

func randomPaths() []string { return []string{"a", "b", "d/x", "d/y", "e/f/z"} }

// anEvent is any event. Few paths make conflicts likely.
func anEvent() *rapid.Generator[event] {
	return rapid.Custom(func(t *rapid.T) event {
		return event{
			what: rapid.SampledFrom([]string{
				"write", "write", "write", "delete", "chmod", "upstream", "upstream", "upstream deletes",
				"outage", "outage ends", "restart", "stop", "merge", "squash", "lost answer",
			}).Draw(t, "what"),
			path:    rapid.SampledFrom(randomPaths()).Draw(t, "path"),
			content: rapid.SampledFrom([]string{"1\n", "2\n", "3\n", "one\ntwo\nthree\n", "one\n2\nthree\n"}).Draw(t, "content"),
			wait:    rapid.SampledFrom([]time.Duration{0, 3 * time.Second, 7 * time.Second, time.Minute}).Draw(t, "wait"),
		}
	})
}

// model is what has to be true of a volume: what the application wrote last, where nobody
// upstream touched the path.
type model struct {
	*node
	own     files // Empty: it was deleted.
	modes   map[string]os.FileMode
	touched map[string]bool
}

// TestRandomLife plays random lives of a volume against the model, with few of them
// unless -rapid.checks wants more.
func TestRandomLife(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		before := f.Value.String()
		if err := flag.Set("rapid.checks", "6"); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = flag.Set("rapid.checks", before) }()
	}
	rapid.Check(t, func(r *rapid.T) {
		events := rapid.SliceOfN(anEvent(), 8, 25).Draw(r, "events")
		lived := t.Run("life", func(t *testing.T) {
			bubbled(t, newWorld(t), func(w *world) { w.live(events) })
		})
		if !lived {
			r.Fatalf("the life was %v", events)
		}
	})
}

func (w *world) live(events []event) {
	w.put("main", files{"a": "1\n", "b": "1\n", "d/x": "one\ntwo\nthree\n", "d/y": "1\n"})
	m := &model{node: w.node(), own: files{}, modes: map[string]os.FileMode{}, touched: map[string]bool{}}
	m.publish()
	m.settle(7 * time.Second)
	for _, e := range events {
		m.play(e)
		m.settle(e.wait)
	}
	m.set(false)
	m.settle(20 * time.Minute)
	m.stop()
	m.publish() // Which takes what upstream did last.
	m.settle(time.Minute)
	m.stop()
	m.check()
	if w.t.Failed() {
		w.t.Logf("the life was %v", events)
	}
}

func (m *model) play(e event) {
	m.t.Helper()
	switch e.what {
	case "write":
		m.write(e.path, e.content)
		m.own[e.path] = e.content
	case "delete":
		if err := os.Remove(filepath.Join(m.tree(), e.path)); err == nil {
			m.own[e.path] = ""
			delete(m.modes, e.path)
			m.watch.touch()
		}
	case "chmod":
		if err := os.Chmod(filepath.Join(m.tree(), e.path), 0o600); err == nil {
			m.modes[e.path] = 0o600
			m.watch.touch()
		}
	case "upstream":
		m.touched[e.path] = true
		m.put("main", files{e.path: e.content})
	case "upstream deletes":
		m.touched[e.path] = true
		m.put("main", files{e.path: ""})
	case "outage", "outage ends":
		m.set(e.what == "outage")
	case "restart":
		m.crash()
	case "stop":
		m.stop()
		m.publish()
	case "lost answer":
		m.remote.set(func(r *nodeRemote) { r.lost = true })
	case "merge", "squash":
		m.merge(e.what)
	}
}

// set has the remote be away or not.
func (m *model) set(down bool) {
	m.remote.set(func(r *nodeRemote) {
		if r.down = nil; down {
			r.down = &remote.Failure{Kind: remote.ErrUnreachable}
		}
	})
}

// crash is the end of the process between two of its steps, and the next one.
func (m *model) crash() {
	m.t.Helper()
	m.volume.Halt()
	m.close()
	m.resume()
}

// merge is what a person does with a side branch: all that it has is taken.
func (m *model) merge(how string) {
	m.t.Helper()
	if m.upstream.Tip(side) == "" {
		return
	}
	args := []string{"commit-tree", "-m", how, "-p", ref}
	if how == "merge" {
		args = append(args, "-p", side)
	}
	m.upstream.SetRef(ref, m.upstream.Git(append(args, side+"^{tree}")...))
	// Upstream's own changes since are taken back by that.
	for _, path := range randomPaths() {
		m.touched[path] = true
	}
}

// check expects nothing to be lost, and all to be one.
func (m *model) check() {
	m.t.Helper()
	position := (&keeper{dir: m.dir}).position(m.t)
	branch := ref
	if position.Diverged {
		branch = side
	}
	tree := m.content()
	m.remoteHas(branch, tree)
	if tip := m.upstream.Tip(branch); position.Tip.String() != tip {
		m.t.Errorf("the tip is %s, and %s %s", position.Tip, branch, tip)
	}
	for path, content := range m.own {
		if got := tree[path]; !m.touched[path] && got != content {
			m.t.Errorf("%s is %q, and the application had it %q", path, got, content)
		}
	}
	for path, mode := range m.modes {
		info, err := os.Stat(filepath.Join(m.tree(), path))
		if err == nil && !m.touched[path] && info.Mode() != mode {
			m.t.Errorf("%s has mode %v, and the application gave it %v", path, info.Mode(), mode)
		}
	}
	m.said.mu.Lock()
	faults := maps.Clone(m.said.faults)
	m.said.mu.Unlock()
	if delete(faults, report.Diverged); len(faults) > 0 {
		m.t.Errorf("%v lasts", faults)
	}
	m.upstream.Git("fsck", "--strict")
	m.remote.git("fsck", "--strict")
}

// content is what the tree has.
func (m *model) content() files {
	m.t.Helper()
	got := files{}
	m.do(filepath.WalkDir(m.tree(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		got[strings.TrimPrefix(path, m.tree()+"/")] = string(content)
		return err
	}))
	return got
}
