package readonly_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/gitvolume/internal/readonly"
	"liken.sh/gitvolume/internal/remote"
)

// url is that of no server.
const url = "https://example.invalid/o/r.git"

// inTime runs the test with a clock of its own, on a node with that remote.
func inTime(t *testing.T, u *upstream, test func(t *testing.T, n *node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		n.connect = u.of
		n.change = func(s *readonly.Settings) { s.DemandEvery = 10 * time.Second }
		n.start()
		test(t, n)
		n.stop()
	})
}

// sleep is until everything has happened that is due in the time.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestTenVolumesCostOnePoll(t *testing.T) {
	u := &upstream{content: "1"}
	inTime(t, u, func(t *testing.T, n *node) {
		var all []*readonly.Attachment
		for i := range 10 {
			pull := "10m"
			if i == 3 {
				pull = "1m"
			}
			all = append(all, n.attach(n.volume(fmt.Sprintf("v%d", i), url, map[string]string{"pull": pull})))
		}
		looks, fetches := u.asked()
		before := n.files()
		sleep(time.Hour)
		polls, more := u.asked()
		if polls -= looks; polls < 59 || polls > 67 || more != fetches {
			t.Errorf("%d looks and %d fetches in an hour in which nothing is new", polls, more-fetches)
		}
		if after := n.files(); after != before {
			t.Error("something was written")
		}
		u.push("2")
		sleep(time.Minute)
		for _, a := range all {
			if read(a, "f") != "2" {
				t.Errorf("a volume shows %q", read(a, "f"))
			}
		}
		if _, more := u.asked(); more != fetches+1 {
			t.Errorf("%d fetches of what is new", more-fetches)
		}
		if repositories, err := n.store.Repositories(); err != nil || len(repositories) != 1 {
			t.Errorf("%d repositories, %v", len(repositories), err)
		}
		n.must(n.followers.Detach(t.Context(), "v3"))
		looks, _ = u.asked()
		sleep(time.Hour)
		if polls, _ := u.asked(); polls-looks > 8 {
			t.Errorf("%d looks in an hour when the quick one is gone", polls-looks)
		}
	})
}

// files are the names and times of all in the store.
func (n *node) files() string {
	n.t.Helper()
	text := ""
	n.must(filepath.WalkDir(n.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		text += fmt.Sprintln(path, info.ModTime().UnixNano(), info.Size())
		return err
	}))
	return text
}

func TestDemandsAreBounded(t *testing.T) {
	u := &upstream{content: "1", looking: time.Second}
	inTime(t, u, func(t *testing.T, n *node) {
		demanded := 0
		n.stop()
		n.change = func(s *readonly.Settings) {
			s.DemandEvery, s.Demanded = 10*time.Second, func() { demanded++ }
		}
		n.start()
		v := n.attach(n.volume("v", url, map[string]string{"pull": "on-demand"}))
		w := n.attach(n.volume("w", url, map[string]string{"pull": "on-demand", "ref": "refs/heads/main"}))
		never := n.attach(n.volume("never", url, map[string]string{"pull": "never"}))
		looks, _ := u.asked()
		u.push("2")
		sleep(time.Hour)
		if now, _ := u.asked(); now != looks || read(v, "f") != "1" {
			t.Errorf("%d looks that nobody asked for", now-looks)
		}
		v.Demand()
		sleep(500 * time.Millisecond)
		for range 20 { // While it is pulled.
			v.Demand()
			never.Demand()
		}
		sleep(2 * time.Second)
		if now, _ := u.asked(); now != looks+1 || read(v, "f") != "2" || read(w, "f") != "1" {
			t.Errorf("%d looks, %q and %q", now-looks, read(v, "f"), read(w, "f"))
		}
		u.push("3")
		sleep(time.Hour)
		if now, _ := u.asked(); now != looks+2 || read(v, "f") != "3" || demanded != 2 || read(never, "f") != "1" {
			t.Errorf("%d looks, %d of them demanded, %q", now-looks, demanded, read(v, "f"))
		}
	})
}

func TestFailuresAreRetriedLater(t *testing.T) {
	u := &upstream{content: "1"}
	inTime(t, u, func(t *testing.T, n *node) {
		a := n.attach(n.volume("v", url, map[string]string{"pull": "1s"}))
		u.set(func(u *upstream) { u.err = &remote.Failure{Kind: remote.ErrUnreachable} })
		sleep(2 * time.Second)
		looks, _ := u.asked()
		sleep(time.Hour)
		if now, _ := u.asked(); now-looks < 10 || now-looks > 16 || n.faults("v") != "FetchFailed " {
			t.Errorf("%d looks in an hour, %s", now-looks, n.faults("v"))
		}
		u.set(func(u *upstream) { u.err, u.content = nil, "2" })
		a.Demand()
		sleep(time.Second)
		if read(a, "f") != "2" || n.faults("v") != "" {
			t.Errorf("%q, %s", read(a, "f"), n.faults("v"))
		}
	})
}

// TestHangingRemotes has more remotes hang than there are slots.
func TestHangingRemotes(t *testing.T) {
	hanging, good := &upstream{content: "1"}, &upstream{content: "1"}
	inTime(t, hanging, func(t *testing.T, n *node) {
		n.connect = func(asked readonly.Asked) readonly.Remote {
			if asked.Repository.URL.String() == url {
				return good.of(asked)
			}
			return hanging.of(asked)
		}
		for i := range 6 {
			n.attach(n.volume(fmt.Sprintf("h%d", i), fmt.Sprintf("https://example.invalid/h%d", i), map[string]string{"pull": "1s"}))
		}
		a := n.attach(n.volume("v", url, map[string]string{"pull": "1s"}))
		hanging.set(func(u *upstream) { u.hangs = true })
		sleep(15 * time.Minute) // All of them were seen to hang.
		longest := time.Duration(0)
		for i := range 20 {
			good.push(fmt.Sprint(i))
			began := time.Now()
			for read(a, "f") != fmt.Sprint(i) && time.Since(began) < time.Hour {
				sleep(100 * time.Millisecond)
			}
			longest = max(longest, time.Since(began))
		}
		if longest > 2*time.Second {
			t.Errorf("an update took %s", longest)
		}
		began := time.Now()
		n.must(n.followers.Detach(t.Context(), "h0"))
		if took := time.Since(began); took > time.Second {
			t.Errorf("a detach took %s", took)
		}
	})
}

// TestCallsAreAnsweredInTime has a clone take longer than a call.
func TestCallsAreAnsweredInTime(t *testing.T) {
	u := &upstream{content: "1", fetching: 5 * time.Minute}
	inTime(t, u, func(t *testing.T, n *node) {
		calls := 0
		for began := time.Now(); ; calls++ {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			start := time.Now()
			a, err := n.followers.Attach(ctx, n.volume("v", url, nil))
			cancel()
			if took := time.Since(start); took > 111*time.Second {
				t.Fatalf("a call took %s", took)
			}
			if err == nil {
				if read(a, "f") != "1" {
					t.Errorf("it shows %q", read(a, "f"))
				}
				break
			}
			if !errors.Is(err, remote.ErrInProgress) || time.Since(began) > time.Hour {
				t.Fatal(err)
			}
			sleep(time.Second)
		}
		if looks, fetches := u.asked(); calls < 2 || looks != 1 || fetches != 1 {
			t.Errorf("%d calls, %d looks, %d fetches", calls, looks, fetches)
		}
	})
}

// TestFailureBetweenCalls has the reason told to the call that comes after it.
func TestFailureBetweenCalls(t *testing.T) {
	u := &upstream{looking: 112 * time.Second, err: &remote.Failure{Kind: remote.ErrAuthentication}}
	inTime(t, u, func(t *testing.T, n *node) {
		for _, want := range []error{remote.ErrInProgress, remote.ErrAuthentication} {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			if _, err := n.followers.Attach(ctx, n.volume("v", url, nil)); !errors.Is(err, want) {
				t.Errorf("error %v, want %v", err, want)
			}
			cancel()
			sleep(5 * time.Second)
		}
		n.leavesNothing()
	})
}

// TestDetachDuringTheClone ends what nobody waits for.
func TestDetachDuringTheClone(t *testing.T) {
	u := &upstream{content: "1", fetching: time.Minute}
	inTime(t, u, func(t *testing.T, n *node) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := n.followers.Attach(ctx, n.volume("v", url, nil)); !errors.Is(err, remote.ErrInProgress) {
			t.Errorf("error %v", err)
		}
		n.must(n.followers.Detach(t.Context(), "v"))
		sleep(time.Hour)
		n.leavesNothing()
	})
}

// TestCredentialComesWhileTheRemoteHangs takes it at once.
func TestCredentialComesWhileTheRemoteHangs(t *testing.T) {
	u := &upstream{content: "1"}
	inTime(t, u, func(t *testing.T, n *node) {
		v := n.volume("v", url, map[string]string{"pull": "1s"})
		v.Credential = token(t, "one")
		a := n.attach(v)
		u.set(func(u *upstream) { u.hangs = true })
		sleep(10 * time.Second)
		began := time.Now()
		a.TakeCredential(token(t, "two"))
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %s", took)
		}
		u.set(func(u *upstream) { u.hangs, u.content = false, "2" })
		sleep(2 * time.Minute)
		if read(a, "f") != "2" {
			t.Errorf("it shows %q", read(a, "f"))
		}
	})
}
