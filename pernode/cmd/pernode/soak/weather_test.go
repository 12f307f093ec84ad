//go:build soak

package soak

import (
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/gate"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/pernode/internal/driver"
)

// weather does one bad thing after the other until the time comes, and leaves a clear sky.
func (s *soak) weather(until time.Time, kills bool) {
	random := s.stream(uint64(s.rounds) << 16)
	for time.Now().Before(until) && !s.T.Failed() {
		s.faults++
		choices := []choice{{2, func() {}}, {3, func() { s.fill(random) }}, {6, func() { s.breakAPI(random) }}, {3, func() { s.setClock(gate.Jump(random)) }}}
		if kills {
			choices = append(choices,
				choice{14, func() { s.restart(random) }}, choice{2, func() { s.restart(random); s.restart(random) }},
				choice{2, func() { s.restartAsAfterReboot(random) }},
				choice{2, func() { s.fill(random, func() { s.restart(random) }) }},
				choice{2, func() { s.breakAPI(random, func() { s.restart(random) }) }})
		}
		(&volume{random: random}).oneOf(choices)
		if s.Plugin.HasEnded() {
			s.T.Errorf("the plugin has ended by itself")
			s.read(0)
		}
		pause(random, 100)
	}
	s.setClock(0)
}

func pause(random *rand.Rand, most int) {
	time.Sleep(time.Duration(random.IntN(most*1000)) * time.Microsecond)
}

// restart ends the plugin by one of the signals that it meets, and starts it again, which may
// be cut short too.
func (s *soak) restart(random *rand.Rand) {
	signals := []syscall.Signal{unix.SIGKILL, unix.SIGKILL, unix.SIGSEGV, unix.SIGTERM}
	s.end(signals[random.IntN(len(signals))])
	for random.IntN(4) == 0 {
		s.StartUnregistered(s.Command())
		pause(random, 150)
		s.end(unix.SIGKILL)
	}
	pause(random, 50)
	s.start()
}

func (s *soak) restartAsAfterReboot(random *rand.Rand) {
	s.calm.Lock() // Whoever has a call under way waits for the plugin to be back.
	s.end(unix.SIGKILL)
	s.reboot()
	s.calm.Unlock()
	pause(random, 20)
	s.start()
}

// fill leaves no block or no inode free for a while, in which other things may happen.
func (s *soak) fill(random *rand.Rand, meanwhile ...func()) {
	dir := filepath.Join(s.disk, "filling")
	s.full.Add(1)
	s.note("the disk fills")
	if err := os.Mkdir(dir, 0o700); err == nil {
		if random.IntN(2) == 0 {
			fillBlocks(dir)
		} else {
			s.fillInodes(dir)
		}
	}
	for _, do := range meanwhile {
		do()
	}
	pause(random, 400)
	if err := os.RemoveAll(dir); err != nil {
		s.T.Errorf("free the disk: %v", err)
	}
	s.note("the disk is free")
	s.full.Add(1)
}

func fillBlocks(dir string) {
	file, err := os.Create(filepath.Join(dir, "blocks"))
	if err != nil {
		return
	}
	defer file.Close()
	offset := int64(0)
	for size := int64(8 << 20); size >= 4096; size /= 2 {
		for unix.Fallocate(int(file.Fd()), 0, offset, size) == nil {
			offset += size
		}
	}
}

// fillInodes takes all but what the kernel keeps, by links to nothing.
func (s *soak) fillInodes(dir string) {
	for i := range diskInodes {
		if os.Symlink("x", filepath.Join(dir, strconv.Itoa(i))) != nil {
			return
		}
	}
	s.T.Errorf("a disk of %d inodes has more", diskInodes)
}

// breakAPI has the API server be away, answer wrongly or be another cluster's for a while.
func (s *soak) breakAPI(random *rand.Rand, meanwhile ...func()) {
	release := make(chan struct{})
	faults := []func() apiserver.Fault{
		func() apiserver.Fault { return apiserver.Fault{Do: apiserver.Cut()} },
		func() apiserver.Fault { return apiserver.Fault{Do: apiserver.CutAfter()} },
		func() apiserver.Fault { return apiserver.Fault{Do: apiserver.Refuse(http.StatusInternalServerError)} },
		func() apiserver.Fault { return apiserver.Fault{Do: apiserver.Refuse(http.StatusForbidden)} },
		func() apiserver.Fault { return apiserver.Fault{Do: apiserver.Refuse(http.StatusTooManyRequests)} },
		func() apiserver.Fault { return apiserver.Fault{Do: apiserver.Refuse(http.StatusNotFound)} },
		func() apiserver.Fault {
			return apiserver.Fault{Do: apiserver.Page(http.StatusOK, "<html>welcome</html>")}
		},
		func() apiserver.Fault { return apiserver.Fault{Do: apiserver.Page(http.StatusBadGateway, "<html>")} },
		func() apiserver.Fault { return apiserver.Fault{Verb: "list", Do: apiserver.Truncate()} },
		func() apiserver.Fault { return apiserver.Fault{Do: apiserver.Hold(release)} },
		otherCluster, otherCluster,
	}
	number := random.IntN(len(faults) + 1)
	if number == len(faults) {
		s.note("the API server forgets what happened")
		s.API.Compact()
		s.API.DropWatches()
		return
	}
	s.note("the API server gets fault %d", number)
	repaired := s.API.Inject(faults[number]())
	if random.IntN(4) > 0 {
		s.API.DropWatches()
	}
	for _, do := range meanwhile {
		do()
	}
	pause(random, 800)
	close(release)
	repaired()
	s.API.DropWatches()
	s.note("the API server is well")
}

// otherCluster answers as the API server of a cluster that has none of these volumes, as one
// does whose address was given to another.
func otherCluster() apiserver.Fault {
	other := apiserver.New()
	other.SetCluster("another cluster")
	other.PutVolume(apiserver.Volume("stranger", driver.Name, "stranger"))
	return apiserver.Fault{Do: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		if query := r.URL.Query(); query.Get("watch") != "" {
			query.Set("timeoutSeconds", "1") // It ends with the fault, more or less.
			r.URL.RawQuery = query.Encode()
		}
		other.ServeHTTP(w, r)
	}}
}

// await is process.Await for what has to become true once the sky is clear. It tells what took
// long: the plugin may have put something off, and has to come back to it.
func (s *soak) await(what string, condition func() bool) {
	s.T.Helper()
	began := time.Now()
	process.Await(s.T, what, func() bool { return s.T.Failed() || condition() })
	if took := time.Since(began); took > 2*time.Second {
		s.note("it took %v for %s", took.Round(time.Millisecond), what)
	}
}
