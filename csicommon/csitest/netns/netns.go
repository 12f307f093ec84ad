// Package netns lets a test cut a network for real: it runs the test in a process and a
// network namespace of its own, with an address that goes away and comes back as that of
// a machine does whose cable is pulled. Nothing is reset then, and no packet arrives.
//
// It must never change the network that it was started in: where no namespace can be had,
// Run skips, with the reason.
package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// nameVariable names, to the process that is started for it, the test to run.
const nameVariable = "LIKEN_TEST_IN_NETWORK"

// Run runs the test with a network of its own, that has nothing but its loopback and the
// link. What the package's TestMain does, it does there once more.
func Run(t *testing.T, test func(t *testing.T, link *Link)) {
	t.Helper()
	if os.Getenv(nameVariable) == t.Name() {
		link, err := up()
		if err != nil {
			t.Fatalf("have a network: %v", err)
		}
		test(t, link)
		return
	}
	out, err := run(t.Name())
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		t.Skipf("cutting a network needs a network namespace of its own: %v", err)
	}
	if err != nil {
		t.Fatalf("in a network of its own: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Fatalf("the test did not run:\n%s", out)
	}
}

// run runs the test again, in the first kind of namespace that can be had.
func run(name string) (out []byte, err error) {
	// Pdeathsig follows the thread that started the child, not the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, attributes := range namespaces() {
		child := exec.Command("/proc/self/exe", "-test.v", "-test.count=1", "-test.run=^"+strings.ReplaceAll(name, "/", "$/^")+"$")
		child.Args[0] = os.Args[0]
		child.Env = append(os.Environ(), nameVariable+"="+name)
		child.SysProcAttr = attributes
		if out, err = child.CombinedOutput(); !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENOSPC) {
			break
		}
	}
	return out, err
}

func namespaces() []*syscall.SysProcAttr {
	return []*syscall.SysProcAttr{
		{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: unix.SIGKILL},
		{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
			Pdeathsig:   unix.SIGKILL,
		},
	}
}

// The loopback, and the link on it, which is its second address.
const (
	loopback = "lo"
	alias    = "lo:1"
)

// Link is the way to an address.
type Link struct{ socket int }

// Address is where to listen, and to connect to, for what a Cut is to concern.
func (*Link) Address() netip.Addr { return netip.AddrFrom4([4]byte{10, 9, 8, 7}) }

// Cut takes the address away: what is sent to it or from it is lost, and nobody is told.
func (l *Link) Cut(t testing.TB) {
	t.Helper()
	if err := l.setUp(alias, false); err != nil {
		t.Fatalf("cut the link: %v", err)
	}
}

// Mend brings the address back. Connections that still wait go on.
func (l *Link) Mend(t testing.TB) {
	t.Helper()
	if err := l.address(); err != nil {
		t.Fatalf("mend the link: %v", err)
	}
}

// Fresh brings up the network of a process that was started in a network namespace of its
// own, for tests that are more than one function. It refuses a network that is in use, as
// the machine's is.
func Fresh() (*Link, error) {
	found, err := net.InterfaceByName(loopback)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", loopback, err)
	}
	if found.Flags&net.FlagUp != 0 {
		return nil, fmt.Errorf("%s is up: this network is not a new one", loopback)
	}
	return up()
}

// up brings up what a new namespace has, and the link.
func up() (*Link, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	l := &Link{socket: socket}
	return l, errors.Join(l.setUp(loopback, true), l.address())
}

func (l *Link) address() error {
	request, err := unix.NewIfreq(alias)
	if err != nil {
		return err
	}
	address := l.Address().As4()
	if err := request.SetInet4Addr(address[:]); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(l.socket, unix.SIOCSIFADDR, request); err != nil {
		return fmt.Errorf("give %s an address: %w", alias, err)
	}
	return nil
}

func (l *Link) setUp(name string, isUp bool) error {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(l.socket, unix.SIOCGIFFLAGS, request); err != nil {
		return fmt.Errorf("read the flags of %s: %w", name, err)
	}
	flags := request.Uint16() &^ unix.IFF_UP
	if isUp {
		flags |= unix.IFF_UP
	}
	request.SetUint16(flags)
	if err := unix.IoctlIfreq(l.socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("set the flags of %s: %w", name, err)
	}
	return nil
}
