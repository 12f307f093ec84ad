package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// ask has a lock asked for, and gives what unlocks it once it is there.
func ask(t *testing.T, lock func() (func(), error)) <-chan func() {
	t.Helper()
	got := make(chan func(), 1)
	go func() {
		unlock, err := lock()
		if err != nil {
			t.Error(err)
		}
		got <- unlock
	}()
	return got
}

func mustGet(t *testing.T, lock <-chan func()) (unlock func()) {
	t.Helper()
	select {
	case unlock := <-lock:
		return unlock
	case <-time.After(time.Minute):
		t.Fatal("the lock does not come")
		return nil
	}
}

func mustWait(t *testing.T, lock <-chan func(), why string) {
	t.Helper()
	select {
	case <-lock:
		t.Fatalf("the lock is given %s", why)
	case <-time.After(50 * time.Millisecond):
	}
}

// gateIsShut waits until somebody waits at the nodes.
func gateIsShut(t *testing.T, dir string) {
	t.Helper()
	Eventually(t, time.Minute, "somebody waits", func() error {
		file, err := os.Open(filepath.Join(dir, "liken-e2e-gate.lock"))
		if err != nil {
			return err
		}
		defer file.Close()
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err == nil {
			return errors.New("nobody does")
		}
		return nil
	})
}

func TestTurns(t *testing.T) {
	dir := t.TempDir()
	one, other := &turns{dir: dir}, &turns{dir: dir} // as in two processes
	first, second := mustGet(t, ask(t, one.share)), mustGet(t, ask(t, other.share))
	alone := ask(t, one.alone)
	gateIsShut(t, dir)
	mustWait(t, alone, "to one who wants to be alone, beside two")
	late := ask(t, other.share)
	mustWait(t, late, "to one who came later than who wants to be alone")
	first()
	mustWait(t, alone, "to one who wants to be alone, beside another")
	second()
	last := mustGet(t, alone)
	mustWait(t, late, "beside one who is alone")
	last()
	mustGet(t, late)()
}

// A test that has the nodes alone makes a namespace without waiting for itself.
func TestWhatATestWantsFirstCounts(t *testing.T) {
	kube := &Cluster{nodes: &turns{dir: t.TempDir(), taken: map[testing.TB]bool{}}}
	t.Run("alone", func(t *testing.T) {
		kube.Alone(t)
		kube.Undisturbed(t)
	})
	t.Run("again", func(t *testing.T) { kube.Alone(t) })
}
