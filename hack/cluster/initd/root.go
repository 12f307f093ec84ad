package initd

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// programs is the directory a machine shares with the host, read-only. What a
// distribution keeps as symlinks into /usr is a symlink on the machine too.
const programs = "/usr"

func links() []string { return []string{"/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"} }

// private are directories of the machine's own disk.
func private() []string {
	return []string{
		"/etc", "/opt", "/proc", "/root", "/run", "/sys", "/dev", "/tmp", programs,
		"/var/lib/kubelet", "/var/lib/liken", "/var/lib/machine", "/var/log", "/var/tmp",
	}
}

// enter makes the disk the machine's root, with the kernel's file systems and the
// host's programs in place.
func enter(spec Spec) error {
	// Nothing that is mounted from here on may show on the host.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("part from the host's mounts: %w", err)
	}
	if err := unix.Mount(spec.Root, spec.Root, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("make the disk %s a mount: %w", spec.Root, err)
	}
	for _, dir := range private() {
		if err := os.MkdirAll(filepath.Join(spec.Root, dir), 0o755); err != nil {
			return fmt.Errorf("lay out the disk: %w", err)
		}
	}
	if err := mountSystem(spec.Root); err != nil {
		return err
	}
	if err := mountPrograms(spec); err != nil {
		return err
	}
	if err := pivot(spec.Root); err != nil {
		return err
	}
	// The default of a booted system, which kubelets and plugins count on to see
	// each other's mounts.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share the machine's mounts: %w", err)
	}
	return shieldKernel()
}

func mountSystem(root string) error {
	const quiet = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	mounts := []struct {
		source, target, kind string
		flags                uintptr
	}{
		{"proc", "/proc", "proc", quiet},
		// Of its own, to show the interfaces of the machine's network.
		{"sysfs", "/sys", "sysfs", quiet},
		{"/sys/fs/cgroup", "/sys/fs/cgroup", "", unix.MS_BIND | unix.MS_REC},
		{"/dev", "/dev", "", unix.MS_BIND | unix.MS_REC},
		{"tmpfs", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV},
	}
	for _, m := range mounts {
		if err := unix.Mount(m.source, filepath.Join(root, m.target), m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return nil
}

func mountPrograms(spec Spec) error {
	if err := bindReadOnly(programs, filepath.Join(spec.Root, programs)); err != nil {
		return err
	}
	for _, name := range links() {
		target := filepath.Join(spec.Root, name)
		link, err := os.Readlink(name)
		if err == nil {
			if err := os.Symlink(link, target); err != nil && !os.IsExist(err) {
				return fmt.Errorf("link %s: %w", name, err)
			}
			continue
		}
		if _, err := os.Stat(name); err != nil {
			continue // not every architecture has each
		}
		if err := os.MkdirAll(target, 0o755); err != nil {
			return fmt.Errorf("lay out the disk: %w", err)
		}
		if err := bindReadOnly(name, target); err != nil {
			return err
		}
	}
	for _, where := range slices.Sorted(maps.Keys(spec.Programs)) {
		target := filepath.Join(spec.Root, where)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return fmt.Errorf("lay out the disk: %w", err)
		}
		if err := bindReadOnly(spec.Programs[where], target); err != nil {
			return err
		}
	}
	return nil
}

// bindReadOnly takes two calls: the kernel ignores MS_RDONLY on a new bind.
func bindReadOnly(source, target string) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", source, err)
	}
	if err := unix.Mount("", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", target, err)
	}
	return nil
}

// pivot moves the root, and lets go of the old one with all that is mounted there.
func pivot(root string) error {
	if err := os.Chdir(root); err != nil {
		return fmt.Errorf("enter the disk: %w", err)
	}
	// With the same directory for both, the old root lies on top of the new one and
	// needs no place of its own.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("make %s the root: %w", root, err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the host's root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("enter the new root: %w", err)
	}
	return nil
}

// shieldKernel gives the kubelet files to set where it wants to set the kernel:
// these settings are the whole host's, and would stay when the cluster goes. They
// read as what the kubelet asks for.
func shieldKernel() error {
	settings := map[string]string{
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/keys/root_maxbytes": "25000000",
	}
	for name, value := range settings {
		file := filepath.Join("/run/kernel", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("shield the kernel's settings: %w", err)
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("shield the kernel's settings: %w", err)
		}
		target := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(target); err != nil {
			continue // a kernel built without it
		}
		if err := unix.Mount(file, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("shield %s: %w", target, err)
		}
	}
	return nil
}
