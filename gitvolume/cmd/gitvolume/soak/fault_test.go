//go:build soak

package soak

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/gate"
)

// kind is a kind of fault. Of those with one lane there is one at a time.
type kind struct {
	name  string
	lane  string
	often int
	// least and most are how long it lasts.
	least, most time.Duration
	begin       func(r *torture, f *fault)
	end         func(r *torture, f *fault)
}

// fault is one of the schedule.
type fault struct {
	kind
	at, lasts time.Duration
	random    *rand.Rand
	lift      func()    // Of faults that know only then how.
	begun     time.Time // Of faults that wait for something first.
}

func kinds() []kind {
	kill := func(s unix.Signal) func(r *torture, f *fault) {
		return func(r *torture, _ *fault) { r.kills++; r.plugin.end(s) }
	}
	start := func(r *torture, _ *fault) { r.plugin.start(r.isDiskFull) }
	return []kind{
		{"kill", "plugin", 20, 0, 2 * time.Second, kill(unix.SIGKILL), start},
		{"crash", "plugin", 8, 0, 2 * time.Second, kill(unix.SIGSEGV), start},
		{"stop", "plugin", 10, 0, 3 * time.Second, kill(unix.SIGTERM), start},
		{"cut", "network", 9, time.Second, 25 * time.Second,
			func(r *torture, _ *fault) { r.link.Cut(r.t) }, func(r *torture, _ *fault) { r.link.Mend(r.t) }},
		{"slow", "network", 7, 3 * time.Second, 20 * time.Second,
			func(r *torture, _ *fault) { r.setSlow(true) }, func(r *torture, _ *fault) { r.setSlow(false) }},
		{"reset", "network", 8, time.Second, 5 * time.Second, (*torture).beginResets, endLift},
		{"refuse", "network", 7, time.Second, 15 * time.Second,
			func(r *torture, _ *fault) { r.refuse() }, func(r *torture, _ *fault) { r.accept() }},
		{"server", "network", 10, 2 * time.Second, 4 * time.Second, (*torture).stopServers, (*torture).startServers},
		{"disk", "disk", 8, time.Second, 12 * time.Second, (*torture).fillDisk, (*torture).freeDisk},
		{"api", "api", 8, time.Second, 15 * time.Second, (*torture).beginAway, endLift},
		{"inotify", "inotify", 5, 5 * time.Second, 20 * time.Second, (*torture).limitWatches, (*torture).unlimitWatches},
		{"clock", "clock", 8, time.Second, 30 * time.Second,
			func(r *torture, f *fault) { r.plugin.setClock(gate.Jump(f.random)) },
			func(r *torture, _ *fault) { r.plugin.setClock(0) }},
	}
}

// longestLife is about how long a plugin lives at most, when a commit is due after 5 s.
const longestLife = 20 * time.Second

func endLift(_ *torture, f *fault) { f.lift() }

// schedule is what goes wrong until the time is over, as the seed says.
func schedule(random *rand.Rand, kinds []kind, until time.Duration) []*fault {
	sum := 0
	for _, k := range kinds {
		sum += k.often
	}
	busy := map[string]time.Duration{}
	var faults []*fault
	for at := 3 * time.Second; at < until; at += time.Duration(500+random.IntN(4000)) * time.Millisecond {
		n := random.IntN(sum)
		i := slices.IndexFunc(kinds, func(k kind) bool { n -= k.often; return n < 0 })
		k := kinds[i]
		f := &fault{
			kind: k, at: at, lasts: k.least + time.Duration(random.Int64N(int64(k.most-k.least))),
			random: rand.New(rand.NewPCG(random.Uint64(), 0)),
		}
		if at < busy[k.lane] || at+f.lasts > until {
			continue
		}
		busy[k.lane] = at + f.lasts + time.Second
		if k.lane == "plugin" { // One that never lives until a tree is quiet commits and pushes nothing.
			busy[k.lane] += time.Duration(random.Int64N(int64(longestLife)))
		}
		faults = append(faults, f)
	}
	return faults
}

// suffer has all that is scheduled happen.
func (r *torture) suffer(faults []*fault) {
	type event struct {
		at time.Duration
		f  *fault
		is string
	}
	var events []event
	for _, f := range faults {
		events = append(events, event{f.at, f, "begins"}, event{f.at + f.lasts, f, "ends"})
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	for _, e := range events {
		time.Sleep(time.Until(r.began.Add(e.at)))
		r.say("%s %s", e.f.name, e.is)
		if e.is == "begins" {
			r.mu.Lock()
			r.suffered[e.f.name]++
			r.mu.Unlock()
			e.f.begin(r, e.f)
		} else {
			e.f.end(r, e.f)
		}
	}
}

func (r *torture) setSlow(isSlow bool) {
	for _, c := range r.cables {
		c.isSlow.Store(isSlow)
	}
}

func (r *torture) refuse() {
	for _, c := range r.cables {
		c.refuse()
	}
}

func (r *torture) accept() {
	for _, c := range r.cables {
		c.accept()
	}
}

// beginResets resets all connections again and again.
func (r *torture) beginResets(f *fault) {
	over, ended := make(chan struct{}), make(chan struct{})
	f.lift = func() { close(over); <-ended }
	go func() {
		defer close(ended)
		for {
			for _, c := range r.cables {
				c.reset()
			}
			select {
			case <-over:
				return
			case <-time.After(time.Duration(20+f.random.IntN(400)) * time.Millisecond):
			}
		}
	}()
}

// serving are parts of the environment of what serves this test's plugin, and of nothing
// else that runs on the machine.
func (r *torture) serving() []string {
	// Each temporary directory of the test is in one.
	mine := filepath.Dir(filepath.Dir(r.repositories[0].bare.Dir))
	marks := []string{"\x00GITTEST_SSHD=" + mine + "/"}
	for _, repository := range r.repositories {
		marks = append(marks, "\x00GIT_PROJECT_ROOT="+filepath.Dir(repository.bare.Dir)+"\x00")
	}
	return marks
}

// servers are the processes that serve somebody, and of them those that take a push.
func (r *torture) servers() (all []int, takesPush bool) {
	marks := r.serving()
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environments {
		environment, err := os.ReadFile(file)
		if err != nil || !slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains("\x00"+string(environment), mark) }) {
			continue
		}
		dir := filepath.Dir(file)
		arguments, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() || !strings.Contains(string(arguments), "git") {
			continue
		}
		all = append(all, pid)
		takesPush = takesPush || strings.Contains(string(arguments), "receive-pack")
	}
	return all, takesPush
}

// longestQuiet is about how long it takes to the next push, when trees have to be quiet for 5 s.
const longestQuiet = 12 * time.Second

// stopServers ends the git servers, in the middle of a push if one comes.
func (r *torture) stopServers(f *fault) {
	for deadline := time.Now().Add(longestQuiet); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, takesPush := r.servers(); takesPush {
			time.Sleep(time.Duration(f.random.IntN(60)) * time.Millisecond)
			break
		}
	}
	signal := unix.SIGTERM
	if f.random.IntN(3) == 0 {
		signal = unix.SIGKILL
	}
	all, takesPush := r.servers()
	if takesPush {
		r.pushesStopped++
	}
	for _, pid := range all {
		_ = unix.Kill(pid, signal)
	}
	r.refuse()
	f.begun = time.Now()
}

// startServers starts them again. Who runs a server removes the locks of dead processes.
func (r *torture) startServers(f *fault) {
	time.Sleep(time.Until(f.begun.Add(f.lasts)))
	for _, repository := range r.repositories {
		_ = filepath.WalkDir(repository.bare.Dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".lock") {
				return ignoreMissing(err)
			}
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > time.Second {
				_ = os.Remove(path)
			}
			return nil
		})
	}
	r.accept()
}

func (r *torture) beginAway(f *fault) {
	do := apiserver.Cut()
	if f.random.IntN(2) == 0 {
		do = apiserver.Refuse(500)
	}
	f.lift = r.plugin.API.Inject(apiserver.Fault{Do: do})
	r.plugin.API.DropWatches()
}

// filler is a file that takes what is left of the disk.
func (r *torture) filler() string { return filepath.Join(r.place, diskName, "filler") }

func (r *torture) isDiskFull() bool { return r.isFull }

func (r *torture) fillDisk(f *fault) {
	r.isFull = true
	file, err := os.Create(r.filler())
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	var offset int64
	for size := int64(diskSize); size >= 4<<10; {
		if err := unix.Fallocate(int(file.Fd()), 0, offset, size); err != nil {
			size /= 2
			continue
		}
		offset += size
	}
	// Some disks are full but for a bit.
	_ = file.Truncate(max(0, offset-int64(f.random.IntN(16))*(16<<10)*int64(f.random.IntN(2))))
}

func (r *torture) freeDisk(*fault) {
	if err := os.Remove(r.filler()); err != nil {
		r.t.Fatal(err)
	}
	r.isFull = false
}

const watchLimit = "/proc/sys/user/max_inotify_watches"

func (r *torture) limitWatches(f *fault) { r.setWatches(strconv.Itoa(f.random.IntN(12))) }

func (r *torture) unlimitWatches(*fault) { r.setWatches("100000") }

func (r *torture) setWatches(limit string) {
	if err := os.WriteFile(watchLimit, []byte(limit), 0); err != nil {
		r.t.Fatal(err)
	}
}

// say tells the log of the run.
func (r *torture) say(format string, arguments ...any) {
	_, _ = fmt.Fprintf(r.log, "%6.1fs %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, arguments...))
}
