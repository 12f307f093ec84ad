package nodevolume_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"liken.sh/csicommon/csitest/logtest"
	"liken.sh/csicommon/event"
	"liken.sh/gitvolume/internal/access"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/nodevolume"
	"liken.sh/gitvolume/internal/policy"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/watch"
	"liken.sh/gitvolume/internal/writeable"
)

// quiesce is shorter than any class allows, so that a test need not wait.
const quiesce = 100 * time.Millisecond

// patience is how long a test waits for what has to come, on a machine that is busy.
const patience = time.Minute

type files = map[string]string

// process is a driver on a node: all that ends with it. The store outlives it.
type process struct {
	t       testing.TB
	store   *store.Store
	command *remote.Command
	slots   *remote.Slots
	fetches *remote.Fetches
	watches *watch.Trees
	reports *report.Reports
	events  *events
	log     *slog.Logger
	Log     *logtest.Log
}

// newProcess begins a driver on a store, whose way to remotes a test may change.
func newProcess(t testing.TB, dir string, change ...func(*remote.Settings)) *process {
	t.Helper()
	p, err := begin(dir, change...)
	check(t, err)
	p.t = t
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.Log.String())
		}
	})
	return p
}

// begin begins a driver, also one that is to be killed.
func begin(dir string, change ...func(*remote.Settings)) (*process, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{watches: watch.New(), events: &events{}, Log: &logtest.Log{}}
	p.log = p.Log.Logger()
	settings := remote.Settings{
		Executable: executable, Directory: dir + ".run", Environment: append(os.Environ(), "GORACE=atexit_sleep_ms=0"), Grace: time.Second,
	}
	for _, c := range change {
		c(&settings)
	}
	p.command, err = remote.New(settings)
	if err != nil {
		return nil, err
	}
	if p.store, err = store.Open(store.Settings{Dir: dir, TrashKeep: time.Hour, Log: p.log}); err != nil {
		return nil, err
	}
	if err := p.store.Recover(context.Background(), p.command); err != nil {
		p.log.Error("recover the repositories", "error", err)
	}
	p.slots = remote.NewSlots(2)
	p.fetches = remote.NewFetches(remote.FetchesSettings{Fetcher: p.command, Slots: p.slots, Timeout: time.Minute})
	p.reports, err = report.New(report.Settings{Recorder: p.events, Log: p.log, Meter: noop.Meter{}})
	return p, err
}

// end is the clean end of a driver.
func (p *process) end() {
	p.t.Helper()
	p.fetches.Close()
	check(p.t, p.store.Close())
}

// wish is which volume is asked for.
type wish struct {
	handle, url, ref string
	arming           writeable.Arming
	anonymous        bool
	secret           map[string]string // nil: there is none.
	began            time.Time
	volatile         string
}

func wants(url string) wish {
	return wish{handle: "notes", url: url, ref: "main", arming: armed(), anonymous: true}
}

func armed() writeable.Arming {
	p := policy.Default()
	p.Quiesce, p.MaxLatency = quiesce, time.Second
	return writeable.Arming{Policy: p, Class: "fast"}
}

// volume is a volume of a process, with what a test asks it.
type volume struct {
	*nodevolume.Volume
	p      *process
	access *access.Access
	report *report.Volume
	wish   wish
}

func (p *process) volume(w wish) *volume {
	p.t.Helper()
	v, err := p.tryVolume(w)
	check(p.t, err)
	return v
}

func (p *process) tryVolume(w wish) (*volume, error) {
	url, err := attributes.ParseURL(w.url)
	if err != nil {
		return nil, err
	}
	v := &volume{p: p, wish: w}
	v.access = access.New(access.Settings{
		Command: p.command, Fetches: p.fetches, Slots: p.slots, URL: url, Dir: p.store.Repository(url, 0).Dir(),
		Serving: credential.Serving{Dir: p.store.Dir(), Helper: []string{"false"}}, Key: []byte("key"),
	})
	if w.anonymous {
		v.access.Take(credential.Anonymous())
	}
	if w.secret != nil {
		given, err := credential.Parse(w.secret)
		if err != nil {
			return nil, err
		}
		v.access.Take(given)
	}
	v.report = p.reports.Volume(report.Subject{Kind: attributes.KindWriteable, Handle: w.handle, Volume: "pv-" + w.handle})
	v.Volume, err = nodevolume.New(nodevolume.Settings{
		Store: p.store, Merges: func(dir string) history.Merger { return p.command.Merger(dir) },
		Access: v.access, Watches: p.watches, Report: v.report, Reports: p.reports, Log: p.log,
		Record: store.Record{Handle: w.handle, Kind: store.Writeable, URL: url, Ref: w.ref},
		Owner:  "default/" + w.handle, Branch: "refs/heads/" + w.ref,
		Root:  metadata.Seen{Kind: metadata.Directory, Mode: 0o777, Owner: uint32(os.Getuid()), Group: uint32(os.Getgid())},
		Fresh: metadata.Plain(), Arming: w.arming, ScanEvery: time.Minute, Began: w.began, Volatile: w.volatile,
	})
	return v, err
}

// ended is a volume that was published and stopped, of a driver that has ended.
func ended(t testing.TB) (upstream *gittest.Bare, dir string, v *volume) {
	t.Helper()
	upstream = gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	dir = newDir(t)
	v = newProcess(t, dir).volume(wants(upstream.Dir)).publish()
	v.stop()
	v.p.end()
	return upstream, dir, v
}

func (v *volume) tree() string { return v.p.store.TreeDir(v.wish.handle) }

func (v *volume) publish() *volume {
	v.p.t.Helper()
	check(v.p.t, v.Publish(v.p.t.Context()))
	return v
}

func (v *volume) stop() {
	v.p.t.Helper()
	check(v.p.t, v.Stop(v.p.t.Context(), 30*time.Second))
}

// write is what the application does.
func (v *volume) write(path, content string) {
	v.p.t.Helper()
	path = filepath.Join(v.tree(), path)
	check(v.p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(v.p.t, os.WriteFile(path, []byte(content), 0o644))
}

// faults are what is wrong with the volume, but for lateness: the classes of the tests have
// a latency of a second or so, which any push exceeds on a machine that is busy enough.
func (v *volume) faults() []string {
	var names []string
	for _, reason := range v.report.Abnormal() {
		if reason.Reason != "UnpushedTooLong" {
			names = append(names, reason.Reason)
		}
	}
	return names
}

// named are the names of faults, in the order in which they are reported.
func named(faults []report.Fault) []string {
	names := make([]string, 0, len(faults))
	for _, f := range faults {
		names = append(names, string(f))
	}
	slices.Sort(names)
	return names
}

// faultsAre expects these faults and no others.
func (v *volume) faultsAre(want ...report.Fault) {
	v.p.t.Helper()
	if !slices.Equal(v.faults(), named(want)) {
		v.p.t.Errorf("the faults are %+v, want %v", v.report.Abnormal(), named(want))
	}
}

// has expects the tree to be these files and no others.
func (v *volume) has(want files) {
	v.p.t.Helper()
	if got := treeOf(v.p.t, v.tree()); !maps.Equal(got, want) {
		v.p.t.Errorf("the tree has %v, want %v", got, want)
	}
}

func treeOf(t testing.TB, dir string) files {
	t.Helper()
	got := files{}
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		got[strings.TrimPrefix(path, dir+"/")] = string(content)
		return err
	}))
	return got
}

// arrives waits until a branch of the remote has these files and no others.
func arrives(t testing.TB, upstream *gittest.Bare, branch string, want files) {
	t.Helper()
	var got files
	within(t, patience, func() bool {
		got = filesOf(upstream, branch)
		return maps.Equal(got, want)
	}, func() string { return branch + " has " + text(got) + ", want " + text(want) })
}

func text(f files) string {
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(f)) {
		lines = append(lines, path+"="+f[path])
	}
	return strings.Join(lines, " ")
}

func filesOf(upstream *gittest.Bare, branch string) files {
	out, err := upstream.TryGit("ls-tree", "-r", "-z", "--format=%(objectname) %(path)", branch)
	got := files{}
	if err != nil {
		return got
	}
	for line := range strings.SplitSeq(out, "\x00") {
		if id, path, found := strings.Cut(line, " "); found {
			got[path], _ = upstream.TryGit("cat-file", "blob", id)
		}
	}
	return got
}

// within waits for something to become so.
func within(t testing.TB, d time.Duration, is func() bool, otherwise func() string) {
	t.Helper()
	for deadline := time.Now().Add(d); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", d, otherwise())
		}
	}
}

// soon waits until there are these faults and no others.
func (v *volume) soon(want ...report.Fault) {
	v.p.t.Helper()
	within(v.p.t, patience, func() bool { return slices.Equal(v.faults(), named(want)) }, func() string {
		return "the faults are " + strings.Join(v.faults(), " ") + ", want " + strings.Join(named(want), " ")
	})
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("the error is %v, want %v", err, want)
	}
}

// events remembers Events.
type events struct {
	mu  sync.Mutex
	all []string
}

// Post implements event.Recorder.
func (e *events) Post(_ event.Object, _ event.Type, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, reason+": "+message)
}

// count is how many Events have a reason.
func (e *events) count(reason string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, text := range e.all {
		if strings.HasPrefix(text, reason+": ") {
			n++
		}
	}
	return n
}

// put commits changes to a branch.
func put(t testing.TB, upstream *gittest.Bare, branch string, changes files) {
	t.Helper()
	upstream.Put(branch, changes)
}

// newDir is a directory for a store, whose path is short enough for sockets.
func newDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "n") //nolint:usetesting // The path of t.TempDir is too long for a socket.
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "s")
}
