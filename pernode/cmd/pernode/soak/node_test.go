//go:build soak

package soak

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/gate"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/pernode/internal/driver"
)

// The disk of the store: small, so that it fills in a moment.
const (
	diskBytes  = 96 << 20
	diskInodes = 32 << 10
)

// soak is a node whose plugin is tortured, and what is known about it.
type soak struct {
	*rig.Node
	seed    uint64
	began   time.Time
	dir     string // Holds all of it, and is left when something failed.
	disk    string // Where the disk of the store is mounted.
	device  uint64 // The disk's.
	canary  canary
	volumes []*volume
	tmp     string // Where the plugin makes temporary files.
	plain   map[string]int

	logMu sync.Mutex
	log   *bufio.Writer

	// calm is held for reading by whoever relies on the mounts staying as they are.
	calm sync.RWMutex
	// gate is what the latest plugin goes through, whose clock is off so much.
	gate *gate.Gate
	off  time.Duration
	// connected is the kubelet that knows the latest plugin.
	connected atomic.Pointer[kubelet.Kubelet]
	// upset grows with each end of the plugin, and is odd until it is back.
	upset atomic.Int64
	// full grows when the disk is being filled, and is odd until it is free again.
	full atomic.Int64

	operations, writes, kills, deletions atomic.Int64

	rounds, faults int
	grown          int64 // What memory the plugin had more after a calm round, in bytes, at most.
	checking       time.Duration
}

// quiet keeps what would be said about each of many processes out of the output.
type quiet struct {
	testing.TB
	s *soak
}

func (q quiet) Logf(format string, arguments ...any) { q.s.note(format, arguments...) }

func newSoak(t *testing.T, seed uint64) *soak {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("mounting a disk of its own needs root")
	}
	dir, err := os.MkdirTemp("", "soak-pernode-") //nolint:usetesting // It stays when something failed.
	if err != nil {
		t.Fatal(err)
	}
	s := &soak{seed: seed, began: time.Now(), dir: dir, disk: filepath.Join(dir, "disk"), tmp: filepath.Join(dir, "tmp")}
	file, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	s.log = bufio.NewWriter(file)
	t.Cleanup(func() { s.verdict(t) })
	s.mountDisk(t)
	s.Node = rig.New(quiet{t, s}, rig.Config{Driver: driver.Name, Command: s.program, Arguments: []string{"--sweep-every", "2s"}})
	s.Store = filepath.Join(s.disk, "store")
	s.JoinCluster()
	for i := range volumes {
		handle := fmt.Sprintf("vol-%d", i)
		s.volumes = append(s.volumes, &volume{
			s: s, number: i, handle: handle, names: [2]string{handle, handle + "-again"}, exists: map[string]bool{}, condemned: true, holder: nobody,
		})
	}
	return s
}

func (s *soak) program(arguments ...string) *exec.Cmd {
	cmd := exec.Command(os.Getenv(programVariable), arguments...)
	cmd.Env = append(os.Environ(), "TMPDIR="+s.tmp)
	s.gate = gate.New(s.T, cmd, gate.Clock)
	s.gate.SetClock(s.off)
	return cmd
}

// setClock has the plugin's clock be off by that, and that of those that are started later.
func (s *soak) setClock(off time.Duration) {
	s.note("the clock is off by %v", off)
	s.off = off
	s.gate.SetClock(off)
}

func (s *soak) mountDisk(t *testing.T) {
	t.Helper()
	for _, dir := range []string{s.disk, s.tmp} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	image := filepath.Join(s.dir, "disk.ext4")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, diskBytes); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{
		{"mkfs.ext4", "-q", "-m", "0", "-N", fmt.Sprint(diskInodes), image},
		{"mount", "-o", "loop", image, s.disk},
	} {
		if said, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", command, err, said)
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(s.disk, 0); err != nil {
			t.Errorf("the disk is still in use when all is over: %v", err)
			_ = unix.Unmount(s.disk, unix.MNT_DETACH)
		}
	})
	var stat unix.Stat_t
	if err := unix.Stat(s.disk, &stat); err != nil {
		t.Fatal(err)
	}
	s.device = stat.Dev
}

// install starts the first plugin, with a neighbour of the store that must stay as it is.
func (s *soak) install() {
	s.T.Helper()
	s.canary = newCanary(s.T, filepath.Join(s.disk, "neighbour"))
	s.start()
	// A store that was never told of a cluster takes the first that answers for its own.
	s.await("the store to know its cluster", func() bool { return exists(filepath.Join(s.Store, "cluster")) })
	s.plain = s.inStore()
}

// start starts the plugin and lets the actors know.
func (s *soak) start() {
	s.T.Helper()
	if s.Kubelet != nil && s.connected.Load() != nil {
		_ = s.Kubelet.Close()
	}
	s.Start()
	s.connected.Store(s.Kubelet)
	if s.upset.Load()%2 == 1 {
		s.upset.Add(1)
	}
}

// end ends the plugin by the signal, and looks at what it said.
func (s *soak) end(signal syscall.Signal) {
	s.T.Helper()
	if s.Plugin.HasEnded() {
		s.T.Errorf("the plugin has ended by itself")
	}
	s.note("plugin %d: %v", s.Plugin.Pid(), signal)
	if s.upset.Load()%2 == 0 {
		s.upset.Add(1)
	}
	s.kills.Add(1)
	s.Plugin.Signal(signal)
	if code := s.Plugin.Wait(); signal == unix.SIGTERM && code != 0 {
		s.T.Errorf("the plugin ended with code %d after SIGTERM, want 0", code)
	}
	s.read(signal)
}

// read keeps the log of a plugin that was ended by the signal, and looks for what no plugin may say.
func (s *soak) read(signal syscall.Signal) {
	log := s.Plugin.Log.String()
	for _, word := range []string{"DATA RACE", "panicked", "panic:", "fatal error:"} {
		// A Go program tells of a fault of memory as it does of one that it found itself.
		if signal != unix.SIGSEGV && strings.Contains(log, word) {
			s.T.Errorf("the plugin says %q", word)
		}
	}
	s.note("plugin %d said:\n%s", s.Plugin.Pid(), log)
}

// note writes to the log that is kept when something failed.
func (s *soak) note(format string, arguments ...any) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	_, _ = fmt.Fprintf(s.log, "%s "+format+"\n", append([]any{time.Now().Format("15:04:05.000000")}, arguments...)...)
}

func (s *soak) say(format string, arguments ...any) {
	s.note(format, arguments...)
	fmt.Printf("soak pernode: "+format+"\n", arguments...)
}

// keep closes the log, and leaves everything if something failed; it says where.
func (s *soak) keep(failed bool) string {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	_ = s.log.Flush()
	if failed {
		return " kept=" + s.dir + " (log, and the store on disk.ext4: mount -o loop)"
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return " left=" + s.dir
	}
	return ""
}
