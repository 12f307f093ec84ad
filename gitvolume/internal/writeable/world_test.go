package writeable_test

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/policy"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/watch"
	"liken.sh/gitvolume/internal/worktree"
	"liken.sh/gitvolume/internal/writeable"
)

const (
	ref    = "refs/heads/main"
	handle = "notes"
	owner  = "default/notes"
)

var side = attributes.SideBranch(ref, handle)

// world is one remote and what nodes have of its volumes.
type world struct {
	t        *testing.T
	upstream *gittest.Bare
	moves    *sync.Mutex
	// slots are those of the node; every node of a world has the same.
	slots *remote.Slots
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, upstream: gittest.NewBare(t), moves: &sync.Mutex{}, slots: remote.NewSlots(2)}
}

// node is one node's part of a volume: what outlives the process, and the process.
type node struct {
	*world
	dir    string
	handle string
	owner  string
	remote *nodeRemote
	said   *said
	arming writeable.Arming
	step   func(writeable.Step)
	jitter func() float64
	// change changes the settings of a process before it begins; nil: nothing.
	change func(*writeable.Settings)

	volume  *writeable.Volume
	repo    *history.Repository
	watch   *fakeWatch
	running bool
}

// node is a node that has nothing yet.
func (w *world) node() *node { return w.nodeOf(handle, owner) }

func (w *world) nodeOf(handle, owner string) *node {
	w.t.Helper()
	n := &node{world: w, dir: w.t.TempDir(), handle: handle, owner: owner, said: newSaid(), arming: armed(nil), jitter: func() float64 { return 0 }}
	w.do(history.Create(n.repoDir()))
	n.remote = &nodeRemote{t: w.t, upstream: w.upstream, store: n.repoDir(), moves: w.moves, slots: w.slots}
	return n
}

// armed is a class of these parameters that is in force.
func armed(parameters map[string]string) writeable.Arming {
	all := map[string]string{"push.quiesce": "5s"}
	maps.Copy(all, parameters)
	p, err := policy.Class{Name: "fast", Driver: "git.liken.sh", Parameters: all}.Arm("git.liken.sh")
	return writeable.Arming{Policy: p, Class: "fast", Unarmed: err}
}

func unarmed() writeable.Arming {
	return writeable.Arming{Policy: policy.Default(), Unarmed: errors.New("it has no class")}
}

func (n *node) repoDir() string { return filepath.Join(n.dir, "r.git") }
func (n *node) tree() string    { return filepath.Join(n.dir, "tree") }

// start begins a process on the node, which does nothing yet.
func (n *node) start() *writeable.Volume {
	n.t.Helper()
	repo, err := history.Open(n.repoDir())
	n.do(err)
	n.repo = repo
	n.watch = newFakeWatch()
	keeper := &keeper{dir: n.dir}
	escaped := func(name string) string { return "refs/git-csi/remote/" + object.EscapeRef(name) }
	own := func(name string) string { return "refs/git-csi/volumes/" + n.handle + "/" + name }
	settings := writeable.Settings{
		Owner: n.owner, Dir: n.tree(),
		Root:  metadata.Seen{Kind: metadata.Directory, Mode: 0o777, Owner: uint32(os.Getuid()), Group: uint32(os.Getgid())},
		Fresh: metadata.Plain(), Ref: ref, Side: attributes.SideBranch(ref, n.handle),
		Refs: writeable.Refs{
			Tip: own("tip"), Next: own("next"), Metadata: own("metadata"), NextMetadata: own("next-metadata"), Agreed: own("agreed"),
			Upstream: escaped(ref), UpstreamSide: escaped(attributes.SideBranch(ref, n.handle)), UpstreamMetadata: escaped(history.MetadataRef),
		},
		Use:        func(context.Context) (func(), error) { return func() {}, nil },
		Repository: repo, Merger: merger(n.repoDir()), Remote: n.remote, Watches: n.watch, Keeper: keeper,
		Report: n.said, Durations: n.said, Log: slog.New(slog.DiscardHandler),
		Arming: n.arming, Position: keeper.position(n.t), ScanEvery: 5 * time.Minute,
		Jitter: n.jitter, BeforeStep: n.step,
	}
	if n.change != nil {
		n.change(&settings)
	}
	n.volume = writeable.New(settings)
	return n.volume
}

// publish is a first publish, after which the application has the tree.
func (n *node) publish() {
	n.t.Helper()
	n.do(n.start().Prepare(n.t.Context()))
	n.follow()
}

// resume is a restart of the driver under a running pod.
func (n *node) resume() {
	n.t.Helper()
	n.do(n.start().Resume(n.t.Context()))
	n.follow()
}

func (n *node) follow() {
	n.t.Helper()
	n.do(n.volume.Watch())
	n.running = true
	go n.volume.Run()
}

// stop is an unpublish.
func (n *node) stop() {
	n.t.Helper()
	if !n.running {
		return
	}
	n.running = false
	n.do(n.volume.Stop(n.t.Context(), 30*time.Second))
	n.close()
}

func (n *node) close() {
	n.t.Helper()
	if n.volume == nil {
		return
	}
	n.do(n.volume.Close())
	n.repo.Close()
	n.volume = nil
}

// write is what an application does, and events tell.
func (n *node) write(path, content string) {
	n.t.Helper()
	n.writeUnseen(path, content)
	n.watch.touch()
}

func (n *node) writeUnseen(path, content string) {
	n.t.Helper()
	path = filepath.Join(n.tree(), path)
	n.do(os.MkdirAll(filepath.Dir(path), 0o755))
	n.do(os.WriteFile(path, []byte(content), 0o644))
}

func (n *node) remove(path string) {
	n.t.Helper()
	n.do(os.RemoveAll(filepath.Join(n.tree(), path)))
	n.watch.touch()
}

// settle passes time until all that is due was done.
func (n *node) settle(d time.Duration) {
	n.t.Helper()
	time.Sleep(d)
	synctest.Wait()
}

// has expects the tree to be these files and no others.
func (n *node) has(want map[string]string) {
	n.t.Helper()
	got := map[string]string{}
	n.do(filepath.WalkDir(n.tree(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		got[strings.TrimPrefix(path, n.tree()+"/")] = string(content)
		return err
	}))
	if !maps.Equal(got, want) {
		n.t.Errorf("the tree has %v, want %v", got, want)
	}
}

// remoteHas expects a branch of the remote to be these files.
func (w *world) remoteHas(branch string, want map[string]string) {
	w.t.Helper()
	got := map[string]string{}
	archive := tar.NewReader(strings.NewReader(w.upstream.Git("archive", branch) + "\n"))
	for header, err := archive.Next(); err != io.EOF; header, err = archive.Next() {
		w.do(err)
		if header.Typeflag == tar.TypeReg {
			content, err := io.ReadAll(archive)
			w.do(err)
			got[header.Name] = string(content)
		}
	}
	if !maps.Equal(got, want) {
		w.t.Errorf("%s has %v, want %v", branch, got, want)
	}
}

func (w *world) count(branch string) string { return w.upstream.Git("rev-list", "--count", branch) }

func (w *world) do(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// bubble runs a test with a clock of its own, which stands still while anything works.
func bubble(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	bubbled(t, newWorld(t), test)
}

func bubbled(t *testing.T, w *world, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		inside := *w
		inside.t = t
		test(&inside)
	})
}

// keeper keeps a volume's position and memory in files.
type keeper struct{ dir string }

func (k *keeper) position(t *testing.T) (p store.Position) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(k.dir, "position.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return p
	}
	if err == nil {
		err = json.Unmarshal(content, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (k *keeper) Keep(p store.Position) error {
	content, err := json.Marshal(p)
	if err != nil {
		return err
	}
	next := filepath.Join(k.dir, "position.next")
	if err := os.WriteFile(next, content, 0o600); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(k.dir, "position.json"))
}

func (k *keeper) KeepMemory(of store.Remembered, m *worktree.Memory) error {
	file, err := os.Create(filepath.Join(k.dir, "memory"))
	if err != nil {
		return err
	}
	_, err = file.WriteString(of.Tip.String() + of.Metadata.String())
	if err == nil {
		_, err = m.WriteTo(file)
	}
	return errors.Join(err, file.Close())
}

func (k *keeper) Memory() (of store.Remembered, m *worktree.Memory) {
	file, err := os.Open(filepath.Join(k.dir, "memory"))
	if err != nil {
		return of, nil
	}
	defer file.Close()
	ids := make([]byte, 4*object.IDSize)
	if _, err := io.ReadFull(file, ids); err != nil {
		return of, nil
	}
	if of.Tip, err = object.Parse(string(ids[:2*object.IDSize])); err != nil {
		return of, nil
	}
	if of.Metadata, err = object.Parse(string(ids[2*object.IDSize:])); err != nil {
		return of, nil
	}
	m, err = worktree.ReadMemory(file)
	if err != nil {
		return of, nil
	}
	return of, m
}

func (k *keeper) Native() func() { return func() {} }

// fakeWatch tells of everything when it is touched.
type fakeWatch struct {
	ready chan struct{}
	mu    sync.Mutex
	state watch.State
	found []string
	stops int
}

func newFakeWatch() *fakeWatch { return &fakeWatch{ready: make(chan struct{}, 1)} }

func (w *fakeWatch) Start(string) (writeable.Watch, error) { return w, nil }

func (w *fakeWatch) touch() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

func (w *fakeWatch) C() <-chan struct{}  { return w.ready }
func (w *fakeWatch) Take() watch.Hint    { return watch.Hint{Everything: true} }
func (w *fakeWatch) TakeAll() watch.Hint { return watch.Hint{Everything: true} }
func (w *fakeWatch) Stop()               { w.stops++ }

func (w *fakeWatch) Found(_ watch.Hint, path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found = append(w.found, path)
}

func (w *fakeWatch) Check(watch.Hint, iter.Seq2[string, watch.Inode]) int { return 0 }

func (w *fakeWatch) State() watch.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// said remembers what a volume said.
type said struct {
	mu      sync.Mutex
	faults  map[report.Fault]string
	moments []string
	figures report.Figures
	skips   []report.Skip
	rebases int
}

func newSaid() *said { return &said{faults: map[report.Fault]string{}} }

func (s *said) Raise(f report.Fault, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[f] = message
}

func (s *said) Clear(faults ...report.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		delete(s.faults, f)
	}
}

func (s *said) Happened(m report.Moment, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moments = append(s.moments, strings.TrimPrefix(string(m), "GitVolume")+": "+message)
}

func (s *said) Skipped(all []report.Skip) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skips = all
}

func (s *said) Update(change func(*report.Figures)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.figures)
}

func (s *said) Committed(time.Duration) {}

func (s *said) Rebased(time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rebases++
}

func (s *said) Pushed(time.Duration) {}

// faultsAre expects these faults to last and no others.
func (n *node) faultsAre(want ...report.Fault) {
	n.t.Helper()
	n.said.mu.Lock()
	defer n.said.mu.Unlock()
	got := slices.Sorted(maps.Keys(n.said.faults))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		n.t.Errorf("the faults are %v, want %v", n.said.faults, want)
	}
}

// happened expects a moment of that kind whose message has the words.
func (n *node) happened(m report.Moment, words string) {
	n.t.Helper()
	n.said.mu.Lock()
	defer n.said.mu.Unlock()
	for _, moment := range n.said.moments {
		if strings.HasPrefix(moment, strings.TrimPrefix(string(m), "GitVolume")+": ") && strings.Contains(moment, words) {
			return
		}
	}
	n.t.Errorf("%s with %q is not among %q", m, words, n.said.moments)
}

func (n *node) figures() report.Figures {
	n.said.mu.Lock()
	defer n.said.mu.Unlock()
	return n.said.figures
}

// put commits changes to a branch of the remote, as an upstream user does, and returns the
// commit. An empty content removes the file.
func (w *world) put(branch string, changes map[string]string) string {
	w.t.Helper()
	var stream strings.Builder
	fmt.Fprintf(&stream, "commit refs/heads/%s\ncommitter t <t@example.invalid> 1700000000 +0000\ndata 2\nup\n", branch)
	if tip := refsOf(w.t, w.upstream.Dir)["refs/heads/"+branch]; tip != "" {
		fmt.Fprintf(&stream, "from %s\n", tip)
	}
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		if content := changes[path]; content == "" {
			fmt.Fprintf(&stream, "D %s\n", path)
		} else {
			fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", path, len(content), content)
		}
	}
	w.upstream.Import(stream.String())
	return refsOf(w.t, w.upstream.Dir)["refs/heads/"+branch]
}
