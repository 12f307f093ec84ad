//go:build soak

package soak

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/gate"
	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/process"
)

// The torture runs in a namespace of users, mounts and networks, which the process outside
// starts by way of mountns. What each stage knows is in the environment of the next.
const (
	// placeVariable is the directory of all that the run makes.
	placeVariable = "GITVOLUME_SOAK_PLACE"
	// insideVariable tells that the process is in the namespaces.
	insideVariable = "GITVOLUME_SOAK_INSIDE"
	// lackVariable is what could not be had, and why.
	lackVariable = "GITVOLUME_SOAK_LACKS"
)

// The names below the place.
const (
	programName = "gitvolume"
	imageName   = "disk.img"
	diskName    = "disk" // Where the image is mounted.
	verdictName = "verdict"
)

func TestMain(m *testing.M) {
	gate.Enter()
	switch {
	case os.Getenv(insideVariable) != "":
		mountns.Main(m)
	case os.Getenv(placeVariable) != "":
		os.Exit(enter())
	}
	// The name is short, as those of sockets have to be.
	place, err := os.MkdirTemp("", "soakg-")
	if err == nil {
		err = errors.Join(os.Chmod(place, 0o755), os.Setenv(placeVariable, place),
			process.Build(filepath.Join(place, programName), "liken.sh/gitvolume/cmd/gitvolume"),
			gate.AskKernel(filepath.Join(place, programName)))
	}
	if err == nil { // Of a run that is ended by force, all is below the place too.
		temporary := filepath.Join(place, "t")
		err = errors.Join(os.Mkdir(temporary, 0o755), os.Setenv("TMPDIR", temporary))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := mountns.Run(m)
	text, _ := os.ReadFile(filepath.Join(place, verdictName))
	verdict := string(text)
	if code == 0 {
		_ = os.RemoveAll(place)
	} else {
		fmt.Printf("what is left is in %s\n", place)
		// What failed may be the end of the test.
		verdict = strings.Replace(verdict, " "+passed+" ", " "+failed+" ", 1)
	}
	fmt.Print(verdict)
	os.Exit(code)
}

// enter mounts the disk, which only the machine's root may, and runs the tests in a
// namespace in which the limits of inotify are its own.
func enter() int {
	// A mount that is not private would be the machine's too.
	err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err != nil {
		fmt.Fprintf(os.Stderr, "make the mounts private: %v\n", err)
		return 1
	}
	var lacks []string
	if err := mountDisk(os.Getenv(placeVariable)); err != nil {
		lacks = append(lacks, fmt.Sprintf("a disk that fills (%v)", err))
	}
	users, err := ids()
	if err != nil {
		lacks = append(lacks, fmt.Sprintf("SSH (%v)", err))
	}
	code, err := runInside(users, strings.Join(lacks, "; "))
	if err != nil {
		fmt.Fprintf(os.Stderr, "run in namespaces: %v\n", err)
		return 1
	}
	return code
}

// diskSize is in bytes. The image has holes.
const diskSize = 512 << 20

func mountDisk(place string) error {
	image, disk := filepath.Join(place, imageName), filepath.Join(place, diskName)
	err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, diskSize), os.Mkdir(disk, 0o755))
	if err != nil {
		return err
	}
	for _, arguments := range [][]string{
		{"mkfs.ext4", "-q", "-F", "-m", "0", image},
		{"mount", "-o", "loop", image, disk},
	} {
		if said, err := exec.Command(arguments[0], arguments[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", arguments[0], err, strings.TrimSpace(string(said)))
		}
	}
	return nil
}

// ids are those that the namespace has. An sshd needs more than its own.
func ids() ([]syscall.SysProcIDMap, error) {
	many := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1 << 16}}
	table, err := os.ReadFile("/proc/self/uid_map")
	if err == nil && len(strings.Fields(string(table))) == 3 && strings.Fields(string(table))[2] != "1" {
		return many, nil
	}
	return []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}, errors.New("an ordinary user has one id, and sshd wants more")
}

func runInside(users []syscall.SysProcIDMap, lacks string) (int, error) {
	// Pdeathsig follows the thread that started the child, not the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	child := exec.Command("/proc/self/exe", os.Args[1:]...)
	child.Args[0] = os.Args[0]
	child.Env = append(os.Environ(), insideVariable+"=yes", lackVariable+"="+lacks)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET,
		UidMappings: users, GidMappings: users, GidMappingsEnableSetgroups: users[0].Size > 1,
		Pdeathsig: unix.SIGKILL,
	}
	if err := child.Start(); err != nil {
		return 0, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT)
	defer signal.Stop(signals)
	go func() {
		for s := range signals {
			_ = child.Process.Signal(s)
		}
	}()
	_ = child.Wait() // ProcessState has all that it says.
	if code := child.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}
	return 1, nil
}
