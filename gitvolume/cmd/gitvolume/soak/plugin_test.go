//go:build soak

package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"liken.sh/csicommon/csitest/gate"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/gitvolume/internal/driver"
)

// plugin is the one of the node, which is one process after another. But for call, its
// functions are for the test's own goroutine.
type plugin struct {
	*rig.Node
	findings *findings
	logs     string
	starts   int
	// refused counts the starts that failed.
	refused int
	pid     atomic.Int64  // The process that was started last.
	off     time.Duration // How much its clock is.
	gate    *gate.Gate

	mu      sync.Mutex
	kubelet *kubelet.Kubelet // nil: there is no plugin.
}

// start starts it and has the kubelet know of it. On a full disk it may take many starts.
func (p *plugin) start(isExcused func() bool) {
	p.T.Helper()
	for deadline := time.Now().Add(process.Patience); ; time.Sleep(time.Second) {
		p.starts++
		cmd := p.Command()
		p.gate = gate.New(p.T, cmd, gate.Clock)
		p.gate.SetClock(p.off)
		p.Plugin = process.Start(p.T, cmd)
		p.pid.Store(int64(p.Plugin.Pid()))
		if p.offers() {
			break
		}
		p.refused++
		said := p.keepLog()
		if !isExcused() {
			p.findings.add("start %d ended with code %d: %s", p.starts, p.Plugin.Wait(), lastLines(said))
		}
		if time.Now().After(deadline) {
			p.T.Fatalf("the plugin does not start: %s", lastLines(said))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	registered, err := kubelet.Register(ctx, p.KubeletDir, driver.Name)
	if err != nil {
		p.T.Fatalf("register the plugin: %v", err)
	}
	p.mu.Lock()
	p.kubelet = registered
	p.mu.Unlock()
}

// setClock has its clock be off by that, and that of those that are started later.
func (p *plugin) setClock(off time.Duration) {
	p.off = off
	p.gate.SetClock(off)
}

// offers waits until it offers itself to the kubelet, or has ended.
func (p *plugin) offers() bool {
	p.T.Helper()
	offers := false
	process.Await(p.T, "the plugin to start", func() bool {
		offers = strings.Contains(p.Plugin.Log.String(), "offering registration to the kubelet")
		return offers || p.Plugin.HasEnded()
	})
	return offers
}

// end ends it by the signal and keeps what it wrote.
func (p *plugin) end(s unix.Signal) (said string) {
	p.T.Helper()
	p.mu.Lock()
	was := p.kubelet
	p.kubelet = nil
	p.mu.Unlock()
	if p.Plugin.HasEnded() {
		p.findings.add("process %d of the plugin ended by itself, with code %d", p.starts, p.Plugin.Wait())
	}
	p.Plugin.Signal(s)
	code := p.Plugin.Wait()
	p.pid.Store(0)
	if was != nil {
		_ = was.Close()
	}
	said = p.keepLog()
	if s == unix.SIGTERM && code != 0 {
		p.findings.add("process %d of the plugin ended with code %d after SIGTERM: %s", p.starts, code, lastLines(said))
	}
	if strings.Contains(said, "DATA RACE") {
		p.findings.add("process %d of the plugin has a data race", p.starts)
	}
	return said
}

// kill ends it, for whoever is not the test's own goroutine and ends all of it.
func (p *plugin) kill() {
	if pid := int(p.pid.Load()); pid > 0 {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// keepLog moves what it wrote to a file.
func (p *plugin) keepLog() string {
	said := p.Plugin.Log.String()
	p.Plugin.Log.Reset()
	if err := os.WriteFile(filepath.Join(p.logs, fmt.Sprintf("plugin-%03d.log", p.starts)), []byte(said), 0o600); err != nil {
		p.T.Error(err)
	}
	return said
}

func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// errAway is that there is no plugin.
var errAway = errors.New("there is no plugin")

// call makes one call of the kubelet.
func (p *plugin) call(ctx context.Context, do func(ctx context.Context, k *kubelet.Kubelet) error) error {
	p.mu.Lock()
	k := p.kubelet
	p.mu.Unlock()
	if k == nil {
		return errAway
	}
	ctx, cancel := context.WithTimeout(ctx, process.Patience)
	defer cancel()
	return do(ctx, k)
}

// isInterrupted tells an error that says only that the plugin was not there, or busy.
func isInterrupted(err error) bool {
	if errors.Is(err, errAway) {
		return true
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.Aborted, codes.Canceled, codes.DeadlineExceeded:
		return true
	}
	return false
}
