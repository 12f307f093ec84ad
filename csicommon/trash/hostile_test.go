package trash

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestDirectoriesSwappedForLinks has an attacker with the item open exchange
// its directories for links to outside, all the time it is being deleted.
func TestDirectoriesSwappedForLinks(t *testing.T) {
	outside, untouched := sentinel(t)
	p := newPlace(t)
	p.run(t)
	for round := range 15 {
		name := fmt.Sprintf("v%d", round)
		path := filepath.Join(p.path, name)
		for i := range 20 {
			check(t, os.MkdirAll(filepath.Join(path, fmt.Sprint(i), "d", "e"), 0o755))
			write(t, filepath.Join(path, fmt.Sprint(i), "d", "f"), 1)
		}
		check(t, os.Symlink(outside, filepath.Join(path, "link")))
		fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY, 0)
		check(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var attack sync.WaitGroup
		for range 2 {
			attack.Go(func() {
				for ctx.Err() == nil {
					i := fmt.Sprint(rand.IntN(20))
					// Fails when one of them is deleted by now, as it is to be.
					_ = unix.Renameat2(fd, "link", fd, i, unix.RENAME_EXCHANGE)
					_ = unix.Symlinkat(outside, fd, "link")
					_ = unix.Renameat2(fd, i, fd, "link", unix.RENAME_EXCHANGE)
				}
			})
		}
		check(t, p.Bin.Put(p.dir, name))
		until(t, "some of it is deleted", func() bool {
			var stat unix.Stat_t
			return p.Bin.Pending() == 0 || unix.Fstatat(fd, "0/d/f", &stat, 0) != nil
		})
		cancel()
		attack.Wait()
		check(t, unix.Close(fd))
		untouched()
	}
	p.emptied(t)
	untouched()
}

// TestFilesAddedWhileItIsDeleted: an application that still has the item open
// may keep it from being deleted, but not the next one.
func TestFilesAddedWhileItIsDeleted(t *testing.T) {
	p := newPlace(t)
	path := filepath.Join(p.path, "v")
	check(t, os.Mkdir(path, 0o755))
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY, 0)
	check(t, err)
	defer unix.Close(fd)
	ctx, cancel := context.WithCancel(t.Context())
	var application sync.WaitGroup
	application.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			_ = unix.Mkdirat(fd, fmt.Sprint(i%100), 0o755) // Fails in the end.
		}
	})
	check(t, os.Mkdir(filepath.Join(p.path, "w"), 0o755))
	check(t, p.Bin.Put(p.dir, "v"))
	check(t, p.Bin.Put(p.dir, "w"))
	p.run(t)
	until(t, "w is deleted", func() bool {
		for _, removed := range p.all() {
			if removed.Name == "w" {
				return true
			}
		}
		return false
	})
	cancel()
	application.Wait()
	p.emptied(t)
}

// killedStore is set for the child process that TestKilledAtAnyMoment kills.
const killedStore = "LIKEN_TEST_TRASH_STORE"

// beKilled puts everything in the store into the bin, deletes it, and then
// waits for the end.
func beKilled(store string) {
	at, err := os.Open(filepath.Join(store, "bin"))
	if err != nil {
		panic(err)
	}
	bin, err := Open(Config{Dir: at, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	go bin.Run(context.Background())
	fmt.Println("running")
	dir, err := os.Open(store)
	if err != nil {
		panic(err)
	}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		if name == "bin" {
			continue
		}
		if err := bin.Put(dir, name); err != nil {
			panic(err)
		}
	}
	select {}
}

func TestKilledAtAnyMoment(t *testing.T) {
	outside, untouched := sentinel(t)
	p := newPlace(t)
	const volumes = 40
	chain(t, filepath.Join(p.path, "deep"), 5000)
	interrupted := 0
	for range 20 {
		for i := range volumes {
			if path := filepath.Join(p.path, fmt.Sprintf("volume-%d", i)); missing(path) {
				tree(t, path, outside)
			}
		}
		killed(t, p.path)
		untouched()
		// A volume is in the store, whole, or it is not there at all.
		for i := range volumes {
			path := filepath.Join(p.path, fmt.Sprintf("volume-%d", i))
			if !missing(path) && used(t, path).Inodes != treeInodes {
				t.Errorf("%s was deleted in place", path)
			}
		}
		left, err := os.ReadDir(p.bin)
		check(t, err)
		if len(left) > 0 {
			interrupted++
		}
	}
	if interrupted == 0 {
		t.Error("no child was killed before it was done: this test tests nothing")
	}
	p.reopen(t)
	p.run(t)
	left, err := os.ReadDir(p.path)
	check(t, err)
	for _, entry := range left {
		if entry.Name() != "bin" {
			check(t, p.Bin.Put(p.dir, entry.Name()))
		}
	}
	p.emptied(t)
	untouched()
}

// killed runs a child on the store and kills it a moment after it began.
func killed(t *testing.T, store string) {
	t.Helper()
	child := exec.Command("/proc/self/exe")
	child.Env = append(os.Environ(), killedStore+"="+store)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	check(t, err)
	check(t, child.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Errorf("the child said %q: %v", line, err)
	}
	time.Sleep(time.Duration(rand.IntN(30_000)) * time.Microsecond) // The random moment.
	check(t, child.Process.Kill())
	if err := child.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the child ended by itself: %v", err)
	}
}
