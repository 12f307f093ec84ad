package readonly_test

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"liken.sh/csicommon/csitest/logtest"
	"liken.sh/csicommon/event"
	"liken.sh/gitvolume/internal/access"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/readonly"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
)

// node is a node: a store that stays, and the process.
type node struct {
	t       testing.TB
	dir     string
	log     logtest.Log
	posts   posts
	reports *report.Reports

	store     *store.Store
	fetches   *remote.Fetches
	slots     *remote.Slots
	followers *readonly.Followers
	// connect makes the Remote; nil: git's own.
	connect func(readonly.Asked) readonly.Remote
	// change is made to the settings.
	change func(*readonly.Settings)

	looks, pulls atomic.Int64
	// pulling is called before each fetch; nil: nothing is.
	pulling  func()
	reported sync.Map // Of *report.Volume by handle.
}

func newNode(t testing.TB) *node {
	t.Helper()
	n := &node{t: t, dir: filepath.Join(t.TempDir(), "store")}
	t.Cleanup(func() { n.stop() })
	return n
}

// start is a new process.
func (n *node) start() *node {
	n.t.Helper()
	var err error
	// A program that another test starts holds the lock of the last process for a moment.
	until(n.t, "the store is free", func() bool {
		n.store, err = store.Open(store.Settings{Dir: n.dir, TrashKeep: time.Hour, Log: n.log.Logger()})
		return err == nil
	})
	n.must(n.store.Recover(context.Background(), command))
	n.reports, err = report.New(report.Settings{Recorder: &n.posts, Log: n.log.Logger(), Meter: noop.Meter{}})
	n.must(err)
	n.slots = remote.NewSlots(2)
	n.fetches = remote.NewFetches(remote.FetchesSettings{Fetcher: command, Slots: n.slots, Timeout: time.Minute})
	settings := readonly.Settings{
		Store: n.store, Connect: n.counted, Slots: n.slots, Key: []byte("key"),
		DemandEvery: time.Millisecond, Log: slog.New(slog.NewTextHandler(&n.log, nil)),
	}
	if n.change != nil {
		n.change(&settings)
	}
	n.followers, err = readonly.New(settings)
	n.must(err)
	return n
}

// stop ends the process. Of a kill, the store's part is in kill_test.go.
func (n *node) stop() {
	if n.followers == nil {
		return
	}
	n.followers.Close()
	n.fetches.Close()
	n.must(n.store.Close())
	n.followers = nil
}

// restart is a new process that follows what the one before did.
func (n *node) restart() map[string]*readonly.Attachment {
	n.t.Helper()
	n.stop()
	n.start()
	return n.resume()
}

func (n *node) resume() map[string]*readonly.Attachment {
	n.t.Helper()
	records, problems, err := n.store.All()
	n.must(err)
	if len(problems) > 0 {
		n.t.Fatal(problems)
	}
	var volumes []readonly.Volume
	for _, r := range records {
		volumes = append(volumes, readonly.Volume{Record: r, Report: n.report(r.Handle)})
	}
	resumed, err := n.followers.Resume(volumes)
	n.must(err)
	return resumed
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// counted counts what the Remotes are asked.
func (n *node) counted(asked readonly.Asked) readonly.Remote {
	if n.connect != nil {
		return &counting{Remote: n.connect(asked), node: n}
	}
	program, err := os.Executable()
	n.must(err)
	hosts, err := credential.OpenKnownHosts(n.store.SSHDir())
	n.must(err)
	a := access.New(access.Settings{
		Command: command, Fetches: n.fetches, Slots: n.slots, URL: asked.Repository.URL, Dir: asked.Repository.Dir(), Depth: asked.Repository.Depth,
		Permit: asked.Permit, Limits: asked.Limits, Key: []byte("key"), Hold: asked.Hold,
		Serving: credential.Serving{Dir: scratch, Helper: []string{program, helperWord}, Hosts: hosts},
	})
	a.Take(asked.Credential)
	return &counting{Remote: readonly.Over(a), node: n}
}

type counting struct {
	readonly.Remote
	node *node
}

func (c *counting) Look(ctx context.Context, names []string) (map[string]readonly.Looked, error) {
	c.node.looks.Add(1)
	return c.Remote.Look(ctx, names)
}

func (c *counting) LookAnew(ctx context.Context, names []string) (map[string]readonly.Looked, error) {
	c.node.looks.Add(1)
	return c.Remote.LookAnew(ctx, names)
}

func (c *counting) pull() {
	c.node.pulls.Add(1)
	if c.node.pulling != nil {
		c.node.pulling()
	}
}

func (c *counting) Fetch(ctx context.Context, refs map[string]string, urgency remote.Urgency) (map[string]remote.Fetched, error) {
	c.pull()
	return c.Remote.Fetch(ctx, refs, urgency)
}

func (c *counting) FetchAnew(ctx context.Context, refs map[string]string, urgency remote.Urgency) (map[string]remote.Fetched, error) {
	c.pull()
	return c.Remote.FetchAnew(ctx, refs, urgency)
}

// report is what is told of a volume.
func (n *node) report(handle string) *report.Volume {
	known, found := n.reported.Load(handle)
	if found && !known.(*reported).isOf(n.reports) {
		found = false
	}
	if !found {
		known = &reported{of: n.reports, Volume: n.reports.Volume(report.Subject{Kind: attributes.KindReadOnlyClaim, Handle: handle, Claim: handle, Namespace: "ns"})}
		n.reported.Store(handle, known)
	}
	return known.(*reported).Volume
}

type reported struct {
	of *report.Reports
	*report.Volume
}

func (r *reported) isOf(reports *report.Reports) bool { return r.of == reports }

// faults are what is wrong with a volume.
func (n *node) faults(handle string) string {
	text := ""
	for _, r := range n.report(handle).Abnormal() {
		text += r.Reason + " "
	}
	return text
}

// volume is one of the URL, with attributes as they are written.
func (n *node) volume(handle, url string, given map[string]string) readonly.Volume {
	n.t.Helper()
	all := map[string]string{"url": url}
	maps.Copy(all, given)
	read, err := attributes.Rules{Local: true}.Parse(attributes.KindReadOnlyClaim, all, handle)
	n.must(err)
	return readonly.Volume{
		Record: store.Record{Handle: handle, Kind: store.ReadOnly}, Attributes: read,
		Credential: credential.Anonymous(), Report: n.report(handle),
	}
}

func (n *node) attach(v readonly.Volume) *readonly.Attachment {
	n.t.Helper()
	a, err := n.followers.Attach(n.t.Context(), v)
	n.must(err)
	return a
}

func urlOf(b *gittest.Bare) string { return "file://" + b.Dir }

func token(t testing.TB, text string) *credential.Credential {
	t.Helper()
	c, err := credential.Parse(map[string]string{"token": text})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// shows waits until the file of the attachment has the content; empty: is not there.
func shows(t testing.TB, a *readonly.Attachment, path, content string) {
	t.Helper()
	until(t, path+" has "+content, func() bool { return read(a, path) == content })
}

func read(a *readonly.Attachment, path string) string {
	text, err := os.ReadFile(filepath.Join(a.Dir(), path))
	if err != nil {
		return ""
	}
	return string(text)
}

func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	within(t, 2*time.Minute, what, done)
}

func within(t testing.TB, limit time.Duration, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not happen in %s: %s", limit, what)
		}
	}
}

// posts keeps the Events' reasons.
type posts struct {
	mu   sync.Mutex
	seen []string
}

func (p *posts) Post(_ event.Object, _ event.Type, reason, _ string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, reason)
}

// count is how many Events had the reason.
func (p *posts) count(reason string) (count int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, seen := range p.seen {
		if seen == reason {
			count++
		}
	}
	return count
}

// gitWith runs git in the repository with an input.
func gitWith(t testing.TB, b *gittest.Bare, input string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = b.Dir, strings.NewReader(input)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
