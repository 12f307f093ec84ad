package nodevolume_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/nodevolume"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/writeable"
)

// A tree that a crash left with changes is committed at the start of the driver, under
// the class that was in force, without a credential, and pushed when there is one.
func TestKeptTreeIsCommitted(t *testing.T) {
	upstream, dir, v := ended(t)
	v.write("b", "1")

	p := newProcess(t, dir)
	w := v.wish
	w.anonymous = false
	w.arming = writeable.Arming{Unarmed: os.ErrNotExist} // The cluster was not asked yet.
	v = p.volume(w)
	before := v.Position().Tip
	check(t, v.Keep(t.Context()))
	if v.Position().Tip == before {
		t.Error("nothing was committed")
	}
	check(t, v.Keep(t.Context())) // Nothing is left to commit.
	v.access.Take(credential.Anonymous())
	check(t, v.Linger(t.Context(), 10*time.Second))
	arrives(t, upstream, "main", files{"a": "1", "b": "1"})
	if got := upstream.Git("rev-list", "--count", "main"); got != "2" {
		t.Errorf("%s commits, want 2", got)
	}
	v.faultsAre()
	p.end()
}

// A volume that is not armed, or of which there is no tree, is not committed by Keep.
func TestKeepLeavesAlone(t *testing.T) {
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	p := newProcess(t, newDir(t))
	w := wants(upstream.Dir)
	check(t, p.volume(w).Keep(t.Context()))
	w.arming.Unarmed = os.ErrNotExist
	v := p.volume(w).publish()
	v.stop()
	v.write("b", "1")
	check(t, v.Keep(t.Context()))
	if got := v.Position().Tip.String(); got != upstream.Tip("refs/heads/main") {
		t.Errorf("the tip is %s: a volume that is not armed was committed", got)
	}
	p.end()
}

// What a dead remote kept from being pushed at the stop is pushed when it is back, without
// a pod, until the next publish.
func TestLinger(t *testing.T) {
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	p := newProcess(t, newDir(t))
	v := p.volume(wants(upstream.Dir)).publish()
	away := upstream.Dir + ".away"
	check(t, os.Rename(upstream.Dir, away))
	v.write("b", "1")
	v.stop()
	v.faultsAre(report.PushFailed)
	check(t, v.Linger(t.Context(), 100*time.Millisecond))
	v.faultsAre(report.PushFailed)
	check(t, os.Rename(away, upstream.Dir))
	v.TakeCredential()
	arrives(t, upstream, "main", files{"a": "1", "b": "1"})
	v.soon()

	check(t, os.Rename(upstream.Dir, away))
	check(t, v.Publish(t.Context())) // Nothing waits for the one that has ended.
	v.write("c", "1")
	v.stop()
	check(t, v.Linger(t.Context(), 100*time.Millisecond))
	check(t, os.Rename(away, upstream.Dir))
	check(t, v.Publish(t.Context()))
	arrives(t, upstream, "main", files{"a": "1", "b": "1", "c": "1"})
	v.stop()
	v.faultsAre()
	check(t, v.Linger(t.Context(), time.Minute)) // There is nothing to push.
	p.end()
}

// Without a credential a stop commits and says that nothing was pushed; a new process
// waits for one.
func TestNoCredential(t *testing.T) {
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	dir := newDir(t)
	p := newProcess(t, dir)
	v := p.volume(wants(upstream.Dir)).publish()
	p.fetches.Close()
	v.access.Drop()
	v.write("b", "1")
	v.stop()
	v.faultsAre(report.CredentialMissing, report.PushFailed)
	if p.events.count("GitVolumePushFailed") == 0 {
		t.Error("no Event tells of the push that could not be tried")
	}
	check(t, p.store.Close())

	p = newProcess(t, dir)
	w := v.wish
	w.anonymous = false
	v = p.volume(w)
	check(t, v.Resume(t.Context()))
	v.faultsAre(report.CredentialMissing)
	v.access.Take(credential.Anonymous())
	v.TakeCredential()
	arrives(t, upstream, "main", files{"a": "1", "b": "1"})
	v.soon()
	v.stop()
	p.end()
}

// A volume in whose work the process ended twice in a row is not followed, and mounted all
// the same; after a while it is tried again.
func TestUnfollowed(t *testing.T) {
	upstream, dir, v := ended(t)
	marked := func(ends string) {
		t.Helper()
		check(t, os.WriteFile(filepath.Join(dir, "volumes", "notes", "mark"), []byte(ends), 0o600))
	}
	marked("1 0\n") // One end may be anybody's.
	p := newProcess(t, dir)
	p.volume(v.wish).publish().stop()
	p.end()

	marked("1 1\n")
	p = newProcess(t, dir)
	v = p.volume(v.wish)
	wantError(t, v.Keep(t.Context()), nodevolume.ErrUnfollowed)
	check(t, v.Publish(t.Context()))
	v.faultsAre(report.Unfollowed)
	v.write("b", "1")
	v.stop()
	v.has(files{"a": "1", "b": "1"})
	if v.Position().Stopped {
		t.Error("a tree that was not committed counts as one")
	}
	w := wants(upstream.Dir)
	w.handle = "new"
	never, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, p.volume(w).Publish(never), context.Canceled) // No tree is made yet.
	p.end()
	check(t, os.WriteFile(filepath.Join(dir, "volumes", "new", "mark"), []byte("1 1\n"), 0o600))

	p = newProcess(t, dir)
	wantError(t, p.volume(w).Publish(t.Context()), nodevolume.ErrUnfollowed)
	v.wish.began = time.Now().Add(-time.Minute + time.Second)
	v = p.volume(v.wish).publish()
	v.faultsAre(report.Unfollowed)
	arrives(t, upstream, "main", files{"a": "1", "b": "1"})
	v.soon()
	v.stop()
	p.end()
	p = newProcess(t, dir)
	if ends := p.store.Suspects()["notes"]; ends != 0 {
		t.Errorf("%d ends are remembered of a volume that is well", ends)
	}
	p.end()
}

// A tree that could not be taken up when the driver began, as there was no file to open, is
// committed when its pod ends, and not given up as long as that cannot be.
func TestStopOfATreeThatIsNotTakenUp(t *testing.T) {
	// Not beside other tests, whose files it would take.
	upstream, dir, v := ended(t)
	p := newProcess(t, dir)
	v = p.volume(v.wish)
	v.write("b", "1")
	withoutFiles(t, func() {
		check(t, v.Resume(t.Context()))
		for range 2 {
			if err := v.Stop(t.Context(), time.Second); err == nil {
				t.Error("a tree that cannot be committed is given up")
			}
		}
	})
	v.stop()
	check(t, v.Linger(t.Context(), time.Minute))
	arrives(t, upstream, "main", files{"a": "1", "b": "1"})
	v.stop()
	p.end()
}

// withoutFiles has the process be unable to open any file meanwhile.
func withoutFiles(t *testing.T, do func()) {
	t.Helper()
	var was unix.Rlimit
	check(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: was.Max}))
	defer func() { check(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was)) }()
	do()
}
