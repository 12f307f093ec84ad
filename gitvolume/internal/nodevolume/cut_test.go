package nodevolume_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"liken.sh/csicommon/csitest/netns"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
)

// stall is how long a connection of these tests may carry nothing.
const stall = 8 * time.Second

// cable is a link to a server, which has a moment's rest after so many bytes of a
// connection have gone there.
type cable struct {
	server string
	mu     sync.Mutex
	after  int64
	rest   func() // Once.
}

// lay lays a cable to a server, which is at the address it gives.
func lay(t *testing.T, link *netns.Link, server string) (c *cable, address string) {
	t.Helper()
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(link.Address(), 0)))
	check(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	c = &cable{server: server}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go c.carry(client)
		}
	}()
	return c, listener.Addr().String()
}

func (c *cable) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.server)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	var gone int64
	for buffer := make([]byte, 32<<10); ; {
		n, err := client.Read(buffer)
		if gone += int64(n); gone > 0 {
			c.restAfter(gone)
		}
		if _, failed := server.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
	}
}

// restsOnce has the cable call rest, once, when so many bytes of a connection were sent.
func (c *cable) restsOnce(after int64, rest func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after, c.rest = after, rest
}

func (c *cable) restAfter(gone int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rest != nil && gone >= c.after {
		c.rest()
		c.rest = nil
	}
}

// A push during which the network is cut, so that nobody is told anything, is given up in
// time. Once the network is there again, what was committed arrives, once.
func TestNetworkCut(t *testing.T) {
	// Git reads all of a pack before a hook runs.
	for name, inHook := range map[string]bool{"in the middle of the pack": false, "before the answer": true} {
		t.Run(name, func(t *testing.T) {
			netns.Run(t, func(t *testing.T, link *netns.Link) { cutDuringPush(t, link, inHook) })
		})
	}
}

func cutDuringPush(t *testing.T, link *netns.Link, inHook bool) {
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	server := gittest.StartHTTP(t, filepath.Dir(upstream.Dir), gittest.HTTPOptions{User: "git", Around: gittest.Whole})
	behind := strings.TrimPrefix(server.URL(""), "http://")
	c, address := lay(t, link, strings.TrimSuffix(behind, "/"))
	p := newProcess(t, newDir(t), func(s *remote.Settings) { s.Stall = stall })
	v := p.volume(wants("http://" + address + "/" + filepath.Base(upstream.Dir))).publish()
	want := files{"a": "1", "b": "1"}
	v.write("b", "1")
	arrives(t, upstream, "main", want)

	cut := make(chan struct{})
	pull := sync.OnceFunc(func() {
		link.Cut(t)
		close(cut)
	})
	passes := filepath.Join(t.TempDir(), "passes")
	if inHook {
		runs := passes + ".runs"
		upstream.Hook("pre-receive", fmt.Sprintf("touch %s; while ! test -e %s; do sleep 0.05; done", runs, passes))
		go func() {
			for {
				if _, err := os.Stat(runs); err == nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			pull()
		}()
	} else {
		c.restsOnce(1<<20, pull)
	}
	v.writeLarge(want)
	select {
	case <-cut:
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing is pushed")
	}
	began := time.Now()
	v.soon(report.PushFailed)
	t.Logf("it was noticed after %s", time.Since(began))
	check(t, os.WriteFile(passes, nil, 0o600)) // The server goes on by itself.
	if inHook {
		arrivesLarge(t, upstream, want)
	} else if got := upstream.Git("rev-list", "--count", "main"); got != "2" {
		t.Errorf("%s commits on the branch, want 2", got)
	}
	v.write("c", "1")
	want["c"] = "1"
	link.Mend(t)
	v.TakeCredential() // Which has the push tried at once.
	arrivesLarge(t, upstream, want)
	v.soon()
	v.stop()
	for path := range want {
		if got := upstream.Git("rev-list", "--count", "main", "--", path); got != "1" {
			t.Errorf("%s was committed %s times", path, got)
		}
	}
	upstream.Git("fsck", "--strict")
	p.end()
}

// writeLarge writes more than what the kernel has room for, and adds it to the files wanted.
// All comes at once: what came after a part was committed would not be in the push.
func (v *volume) writeLarge(want files) {
	t := v.p.t
	t.Helper()
	large := t.TempDir()
	for i := range 20 {
		content := make([]byte, 900<<10)
		_, _ = rand.Read(content)
		content[len(content)-1] = '.' // What reads it back takes off the end of a line.
		want[fmt.Sprintf("large/%d", i)] = string(content)
		check(t, os.WriteFile(filepath.Join(large, strconv.Itoa(i)), content, 0o644))
	}
	check(t, os.Rename(large, filepath.Join(v.tree(), "large")))
}

// arrivesLarge is arrives for what nobody can read.
func arrivesLarge(t *testing.T, upstream *gittest.Bare, want files) {
	t.Helper()
	within(t, 2*patience, func() bool { return maps.Equal(filesOf(upstream, "main"), want) }, func() string {
		return fmt.Sprintf("the branch has %d files that are not the %d wanted", len(filesOf(upstream, "main")), len(want))
	})
}
