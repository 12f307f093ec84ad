package published_test

import (
	"context"
	"errors"
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
	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/event"
	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/persistentvolume"
	"liken.sh/csicommon/podinfo"
	"liken.sh/gitvolume/internal/access"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/published"
	"liken.sh/gitvolume/internal/readonly"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/watch"
	"liken.sh/gitvolume/internal/written"
)

const (
	driverName = "git.example"
	clusterUID = "cluster-1"
)

// node is a node: a store and a kubelet that stay, and the process.
type node struct {
	t       testing.TB
	dir     string // The store's.
	kubelet string
	run     string // For sockets.
	log     logtest.Log
	posts   posts
	cluster *cluster
	classes *classes // nil: none is read, and what records name counts.
	rules   attributes.Rules
	allowed credential.Allowed
	minFree store.Free
	// volatile is why no new tree is made.
	volatile string
	// stopPush is what a push at a stop may take.
	stopPush time.Duration
	// addresses are those that inline volumes may reach although they are local.
	addresses attributes.Addresses

	store     *store.Store
	mounts    *counted
	fetches   *remote.Fetches
	followers *readonly.Followers
	written   *written.Node
	volumes   *published.Volumes
}

func newNode(t testing.TB) *node {
	t.Helper()
	mountns.Require(t)
	run, err := os.MkdirTemp("", "p") //nolint:usetesting // Of a short path: sockets are in it.
	if err != nil {
		t.Fatal(err)
	}
	n := &node{
		t: t, dir: filepath.Join(t.TempDir(), "store"), kubelet: mountns.SharedDir(t), run: run,
		cluster: &cluster{known: map[string]persistentvolume.Volume{}, gone: map[string]bool{}, followed: map[string]int{}},
		rules:   attributes.Rules{Local: true}, stopPush: time.Minute,
	}
	t.Cleanup(func() {
		n.stop()
		_ = os.RemoveAll(run)
		if t.Failed() {
			t.Log(n.log.String())
		}
	})
	return n.start()
}

// start is a new process.
func (n *node) start() *node {
	n.t.Helper()
	program, err := os.Executable()
	n.must(err)
	command, err := remote.New(remote.Settings{Executable: program, Directory: filepath.Join(n.run, "g"), Environment: os.Environ(), Room: func() error { return n.store.CheckFree() }})
	n.must(err)
	log := n.log.Logger()
	until(n.t, "the store is free", func() bool {
		n.store, err = store.Open(store.Settings{Dir: n.dir, MinFree: n.minFree, TrashKeep: time.Hour, Log: log})
		return err == nil
	})
	n.must(n.store.SetCluster(clusterUID))
	n.must(n.store.Recover(context.Background(), command))
	reports, err := report.New(report.Settings{Recorder: &n.posts, Log: log, Meter: noop.Meter{}})
	n.must(err)
	slots := remote.NewSlots(2)
	n.fetches = remote.NewFetches(remote.FetchesSettings{Fetcher: command, Slots: slots, Timeout: time.Minute})
	hosts, err := credential.OpenKnownHosts(n.store.SSHDir())
	n.must(err)
	reach := func(r store.Repository, permit remote.Permit, limits string) *access.Access {
		return access.New(access.Settings{
			Command: command, Fetches: n.fetches, Slots: slots, URL: r.URL, Dir: r.Dir(), Depth: r.Depth,
			Permit: permit, Limits: limits, Key: []byte("key"), Hold: readonly.Asked{Repository: r}.Hold,
			Serving: credential.Serving{Dir: n.run, Helper: []string{program, helperWord}, Hosts: hosts},
		})
	}
	system, err := mount.New(mount.Config{Scratch: filepath.Join(n.dir, store.ScratchDir), Log: log})
	n.must(err)
	n.followers, err = readonly.New(readonly.Settings{
		Store: n.store, IsShown: published.MountedAnywhere(system), Slots: slots, Key: []byte("key"), DemandEvery: time.Millisecond, Log: log,
		Connect: func(asked readonly.Asked) readonly.Remote {
			a := reach(asked.Repository, asked.Permit, asked.Limits)
			a.Take(asked.Credential)
			return readonly.Over(a)
		},
	})
	n.must(err)
	n.written = written.New(written.Settings{
		Store: n.store, Connect: reach, Merges: func(dir string) history.Merger { return command.Merger(dir) },
		Watches: watch.New(), Reports: reports, ScanEvery: time.Minute, StopPush: n.stopPush, Volatile: n.volatile, Log: log,
	})
	n.mounts = &counted{System: system}
	settings := published.Settings{
		Driver: driverName, Store: n.store, Followers: n.followers, Written: n.written, Mounts: n.mounts, KubeletDir: n.kubelet,
		Reports: reports, Rules: n.rules, Allowed: n.allowed, Addresses: n.addresses, Cluster: n.cluster, Log: log,
	}
	if n.classes != nil {
		settings.Classes = n.classes
	}
	n.volumes = published.New(settings)
	n.cluster.isOf(n.volumes) // Before anything is followed.
	n.must(n.volumes.Resume(n.t.Context()))
	return n
}

func (n *node) stop() {
	if n.followers == nil {
		return
	}
	n.volumes.End(context.Background())
	n.followers.Close()
	n.fetches.Close()
	n.must(n.store.Close())
	n.followers = nil
}

func (n *node) restart() *node {
	n.t.Helper()
	n.stop()
	return n.start()
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// pod is a pod that mounts a volume.
type pod struct {
	n      *node
	target string
	wish   published.Publication
}

// claimed is a pod with a claim of a PersistentVolume, whose name is its handle.
func (n *node) claimed(pv, uid, url string, more ...string) *pod {
	n.t.Helper()
	return n.pod(attributes.KindReadOnlyClaim, pv, pv, uid, url, more...)
}

// inline is a pod with a volume of its own.
func (n *node) inline(uid, url string, more ...string) *pod {
	n.t.Helper()
	return n.pod(attributes.KindInline, "csi-"+uid, "repo", uid, url, more...)
}

func (n *node) pod(kind attributes.Kind, handle, name, uid, url string, more ...string) *pod {
	n.t.Helper()
	given := map[string]string{"url": url}
	for i := 0; i < len(more); i += 2 {
		given[more[i]] = more[i+1]
	}
	target := filepath.Join(n.kubelet, "pods", uid, "volumes", "kubernetes.io~csi", name, "mount")
	n.must(os.MkdirAll(filepath.Dir(target), 0o750))
	return &pod{n: n, target: target, wish: published.Publication{
		Handle: handle, Target: target, Kind: kind, Attributes: given,
		Pod: podinfo.Pod{Namespace: "apps", Name: "pod-" + uid, UID: uid},
	}}
}

func (p *pod) with(secret map[string]string) *pod {
	p.wish.Secret = maps.Clone(secret)
	return p
}

// publish is what the kubelet asks for, first and again.
func (p *pod) publish() error {
	if p.n.volumes.Republish(p.wish.Handle, p.target, p.isReadOnly(), p.wish.Secret) {
		return nil
	}
	return p.n.volumes.Publish(p.n.t.Context(), p.wish)
}

// isReadOnly tells whether the pod asks for a mount that it cannot write.
func (p *pod) isReadOnly() bool {
	return p.wish.Kind != attributes.KindWriteable || p.wish.Options.ReadOnly
}

func (p *pod) published() *pod {
	p.n.t.Helper()
	p.n.must(p.publish())
	return p
}

func (p *pod) unpublish() {
	p.n.t.Helper()
	p.n.must(p.n.volumes.Unpublish(p.n.t.Context(), p.wish.Handle, p.target))
}

// refused expects an error, and gives its text.
func (p *pod) refused(want error, words string) {
	p.n.t.Helper()
	err := p.publish()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), words) {
		p.n.t.Errorf("publish: %v, want %v with %q", err, want, words)
	}
	if mounted, err := p.n.mounts.IsMount(p.target); mounted || err != nil {
		p.n.t.Errorf("something is mounted all the same, %v", err)
	}
}

// shows waits until the pod sees the content.
func (p *pod) shows(path, content string) {
	p.n.t.Helper()
	until(p.n.t, path+" has "+content, func() bool {
		text, err := os.ReadFile(filepath.Join(p.target, path))
		return err == nil && string(text) == content
	})
}

func (p *pod) faults() string {
	var names []string
	for _, r := range p.n.volumes.Abnormal(p.wish.Handle) {
		names = append(names, r.Reason)
	}
	return strings.Join(names, " ")
}

// hasWords tells whether a fault is among them, with words in its message.
func hasWords(all []report.Reason, fault, words string) bool {
	return slices.ContainsFunc(all, func(r report.Reason) bool { return r.Reason == fault && strings.Contains(r.Message, words) })
}

// becomes waits until these are the faults.
func (p *pod) becomes(faults string) {
	p.n.t.Helper()
	until(p.n.t, "the faults are "+faults, func() bool { return p.faults() == faults })
}

// isEmpty expects that the node has nothing left of any volume.
func (n *node) isEmpty() {
	n.t.Helper()
	records, problems, err := n.store.All()
	n.must(err)
	keys, err := n.store.Checkouts()
	n.must(err)
	if len(records)+len(problems)+len(keys) > 0 {
		n.t.Errorf("left are %d records, %d problems, %d checkouts", len(records), len(problems), len(keys))
	}
}

// counted counts what is mounted and unmounted.
type counted struct {
	*mount.System
	mu             sync.Mutex
	binds, unbinds int
}

func (c *counted) Bind(source *os.File, target string, o mount.Options) error {
	c.mu.Lock()
	c.binds++
	c.mu.Unlock()
	return c.System.Bind(source, target, o)
}

func (c *counted) Unbind(target string) error {
	c.mu.Lock()
	c.unbinds++
	c.mu.Unlock()
	return c.System.Unbind(target)
}

// cluster is what is known of PersistentVolumes.
type cluster struct {
	mu        sync.Mutex
	known     map[string]persistentvolume.Volume
	gone      map[string]bool
	followed  map[string]int
	failing   error // Of what is asked.
	confirmed int
	changed   func(string)
}

// isOf has another process follow the PersistentVolumes, which begins with none.
func (c *cluster) isOf(v *published.Volumes) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = v.Changed
	clear(c.followed)
}

// Follow tells what is known already, as the API server does in a moment.
func (c *cluster) Follow(pv string) {
	c.count(pv, 1)
	c.Tell(pv)
}

// Tell does so once more.
func (c *cluster) Tell(pv string) {
	if _, state := c.Get(pv); state != persistentvolume.Unknown {
		go c.changed(pv)
	}
}
func (c *cluster) Unfollow(pv string) { c.count(pv, -1) }
func (c *cluster) count(pv string, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.followed[pv] += by; c.followed[pv] == 0 {
		delete(c.followed, pv)
	}
}

func (c *cluster) Get(pv string) (persistentvolume.Volume, persistentvolume.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, found := c.known[pv]
	switch {
	case c.gone[pv]:
		return persistentvolume.Volume{}, persistentvolume.Absent
	case !found:
		return persistentvolume.Volume{}, persistentvolume.Unknown
	}
	return known, persistentvolume.Present
}

// knows has the API server know a PersistentVolume, as soon as it is followed.
func (c *cluster) knows(pv string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.known[pv]; !known {
		c.known[pv] = volumeNamed(pv)
	}
}

func volumeNamed(pv string) persistentvolume.Volume {
	return persistentvolume.Volume{Name: pv, Driver: driverName, Handle: pv, ClaimNamespace: "apps", ClaimName: "claim-" + pv, ClaimUID: "uid-" + pv}
}

// isAway has the API server not answer about a PersistentVolume.
func (c *cluster) isAway(pv string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, pv)
}

// exists has a PersistentVolume be there of which no watch tells.
func (c *cluster) exists(pv, handle string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := volumeNamed(pv)
	known.Handle = handle
	c.known[pv] = known
}

// fails has the API server fail when it is asked.
func (c *cluster) fails(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing = err
}

// deletes has the API server tell that a PersistentVolume is gone.
func (c *cluster) deletes(pv string) {
	c.mu.Lock()
	delete(c.known, pv)
	c.gone[pv] = true
	c.mu.Unlock()
	c.changed(pv)
}

// Read and Confirm are what the API server says when it is asked.
func (c *cluster) Read(_ context.Context, pv string) (persistentvolume.Volume, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, found := c.known[pv]
	return known, found, c.failing
}

func (c *cluster) Confirm(_ context.Context, uid, _ string) ([]persistentvolume.Volume, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.confirmed++
	if uid != clusterUID {
		return nil, persistentvolume.ErrOtherCluster
	}
	return slices.Collect(maps.Values(c.known)), c.failing
}

// tells has the API server answer about a PersistentVolume.
func (c *cluster) tells(pv string, change func(*persistentvolume.Volume)) {
	c.mu.Lock()
	known, found := c.known[pv]
	if !found {
		known = volumeNamed(pv)
	}
	if change != nil {
		change(&known)
	}
	c.known[pv] = known
	delete(c.gone, pv)
	c.mu.Unlock()
	c.changed(pv)
}

// posts keeps Events, as "Kind/name Reason".
type posts struct {
	mu  sync.Mutex
	all []string
}

func (p *posts) Post(about event.Object, _ event.Type, reason, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, about.Kind+"/"+about.Name+" "+reason+": "+message)
}

// has counts the Events that begin so.
func (p *posts) has(prefix string) (count int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, post := range p.all {
		if strings.HasPrefix(post, prefix) {
			count++
		}
	}
	return count
}

func urlOf(b *gittest.Bare) string { return "file://" + b.Dir }

func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not happen: %s", what)
		}
	}
}

// running has the volumes run until stop, or the end of the test.
func running(t testing.TB, n *node) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { n.volumes.Run(ctx); close(ended) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}
