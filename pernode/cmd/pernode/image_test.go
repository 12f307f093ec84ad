package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/rig"
)

// The image holds the binary and nothing else, on a read-only root: no shell, no
// mount program, no /tmp, no /etc.
func TestNothingButTheBinary(t *testing.T) {
	t.Parallel()
	n := newStandaloneNode(t)
	if err := os.Mkdir(n.Store, 0o700); err != nil {
		t.Fatal(err)
	}
	binary := buildStatic(t)
	root := readOnlyRoot(t, binary, n.Store, n.KubeletDir, "/proc")

	cmd := exec.Command("/pernode", n.Arguments()...)
	cmd.Dir = "/"
	cmd.Env = []string{}
	cmd.SysProcAttr = rig.OwnNamespace()
	cmd.SysProcAttr.Chroot = root
	n.StartUnregistered(cmd)
	n.Register()
	for range 2 {
		n.mustPublish("h1", 1)
	}
	target := n.Target("h1", 1)
	if mounts := rig.MountsAt(t, os.Getpid(), target); len(mounts) != 1 {
		t.Errorf("mounts at the target: %+v, want one", mounts)
	}
	writeFile(t, filepath.Join(target, "f"), "x")
	rig.WantCode(t, n.Publish(volume("h1"), rig.Pod(2)), codes.FailedPrecondition)
	n.wantAnswer("/readyz", 200, "ok")
	n.wantAnswer("/metrics", 200, "per_node_copies 1")
	n.mustUnpublish("h1", 1)
	if exists(target) {
		t.Error("the target is still there")
	}
}

// buildStatic builds the plugin as for its image.
func buildStatic(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pernode")
	build := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, said)
	}
	wantStatic(t, path)
	return path
}

// wantStatic checks that no loader and no library has to be beside the binary.
func wantStatic(t *testing.T, path string) {
	t.Helper()
	binary, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP || segment.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary has a segment %v", segment.Type)
		}
	}
	if libraries, err := binary.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("the binary needs libraries %q: %v", libraries, err)
	}
}

// readOnlyRoot makes a root of a file system that holds /pernode and the
// directories shown, at the paths they have outside.
func readOnlyRoot(t *testing.T, binary string, shown ...string) string {
	t.Helper()
	root := t.TempDir()
	t.Cleanup(func() { mountns.UnmountBelow(t, root) })
	if err := unix.Mount("none", root, "tmpfs", 0, "mode=0755"); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "pernode"), program, 0o555); err != nil {
		t.Fatal(err)
	}
	for _, dir := range shown {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("none", root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for _, dir := range shown {
		if err := unix.Mount(dir, filepath.Join(root, dir), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			t.Fatalf("show %s: %v", dir, err)
		}
	}
	return root
}
