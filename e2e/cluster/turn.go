package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// turns lets tests share the nodes, those of other processes too, and one test at a time
// have them alone, to take one away.
type turns struct {
	// dir has the files that are locked.
	dir string

	mu sync.Mutex
	// taken are the tests that have said what they want.
	taken map[testing.TB]bool
}

func newTurns() *turns { return &turns{dir: "/run/lock", taken: map[testing.TB]bool{}} }

// Alone waits until no test that wants to be undisturbed is under way, and keeps others
// from beginning until the test has ended: it takes a node away, or a kubelet.
func (c *Cluster) Alone(t testing.TB) {
	t.Helper()
	c.nodes.take(t, c.nodes.alone)
}

// Undisturbed keeps the nodes as they are until the test has ended.
func (c *Cluster) Undisturbed(t testing.TB) {
	t.Helper()
	c.nodes.take(t, c.nodes.share)
}

// Disturbed is for a test that does not mind: what it waits for comes all the same.
func (c *Cluster) Disturbed(t testing.TB) {
	t.Helper()
	c.nodes.take(t, func() (func(), error) { return func() {}, nil })
}

// take does it once for a test: what it wants first counts.
func (n *turns) take(t testing.TB, lock func() (func(), error)) {
	t.Helper()
	n.mu.Lock()
	taken := n.taken[t]
	n.taken[t] = true
	n.mu.Unlock()
	if taken {
		return
	}
	unlock, err := lock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unlock)
}

func (n *turns) share() (unlock func(), err error) { return n.lock(syscall.LOCK_SH) }

func (n *turns) alone() (unlock func(), err error) { return n.lock(syscall.LOCK_EX) }

// lock goes through a gate, which is held by whoever waits: without it those who share
// would go on beginning before the one who wants to be alone.
func (n *turns) lock(how int) (func(), error) {
	gate, err := n.flock("gate", syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer gate()
	return n.flock("nodes", how)
}

func (n *turns) flock(name string, how int) (unlock func(), err error) {
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return nil, fmt.Errorf("wait for the nodes: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(n.dir, "liken-e2e-"+name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("wait for the nodes: %w", err)
	}
	for {
		err := syscall.Flock(int(file.Fd()), how)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if err != syscall.EINTR {
			_ = file.Close()
			return nil, fmt.Errorf("wait for the nodes: %w", err)
		}
	}
}
