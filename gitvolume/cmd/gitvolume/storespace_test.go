package main

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/logtest"
	"liken.sh/csicommon/usage"
)

// disk is one that can be had to hang and to fail.
type disk struct {
	mu    sync.Mutex
	bytes int64
	err   error
	hang  chan struct{} // nil: it answers.
	asked int
}

func (d *disk) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *disk) space() (usage.Space, error) {
	var hang chan struct{}
	d.set(func() { d.asked++; hang = d.hang })
	if hang != nil {
		<-hang
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return usage.Space{Bytes: d.bytes, AvailableBytes: d.bytes / 2}, d.err
}

// hangs has the disk hang until answer is called.
func (d *disk) hangs() (answer func()) {
	hang := make(chan struct{})
	d.set(func() { d.hang = hang })
	return func() {
		d.set(func() { d.hang = nil })
		close(hang)
		synctest.Wait()
	}
}

// wantSpace wants a scrape to show a disk of so many bytes, 0 for none, after a time.
func wantSpace(t *testing.T, s *storeSpace, bytes int64, after time.Duration) {
	t.Helper()
	start := time.Now()
	space, known := s.current(t.Context())
	if want := (usage.Space{Bytes: bytes, AvailableBytes: bytes / 2}); space != want || known != (bytes != 0) {
		t.Errorf("%+v, %t, want %+v", space, known, want)
	}
	if took := time.Since(start); took != after {
		t.Errorf("a scrape took %s, want %s", took, after)
	}
}

// While the disk hangs no scrape waits for long and one question is asked, which counts
// when it is answered at last.
func TestTheSpaceOfADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{bytes: 100}
		s := &storeSpace{ask: d.space}
		answer := d.hangs()
		for range 5 {
			wantSpace(t, s, 0, spacePatience)
		}
		answer()
		answer = d.hangs()
		for range 5 {
			wantSpace(t, s, 100, spacePatience)
		}
		d.set(func() {
			d.bytes = 200
			if d.asked != 2 {
				t.Errorf("%d questions were asked of a disk that hung twice", d.asked)
			}
		})
		answer()
		wantSpace(t, s, 200, 0)
		d.set(func() { d.bytes = 300 })
		wantSpace(t, s, 300, 0)
	})
}

func TestTheSpaceOfADiskThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Log
		d := &disk{bytes: 100, err: unix.EIO}
		s := &storeSpace{ask: d.space, log: log.Logger()}
		wantSpace(t, s, 0, 0)
		for range 2 {
			d.set(func() { d.err = nil })
			wantSpace(t, s, 100, 0)
			d.set(func() { d.err = unix.EIO })
			for range 3 {
				wantSpace(t, s, 100, 0)
			}
		}
		if told := strings.Count(log.String(), unix.EIO.Error()); told != 3 {
			t.Errorf("%d lines of a disk that failed three times:\n%s", told, log.String())
		}
	})
}
