//go:build soak

package soak

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// markName is the file that tells a copy from the one that comes after it.
const markName = "mark"

// tree is what pods wrote into a copy and were told is written.
type tree struct {
	files   map[string][]byte // Content by path.
	hostile map[string]int    // How much there is in a tree that is hard to remove, by name.
	serial  int
}

// enter opens what the pod has at its target, nil if that is not the copy.
func (v *volume) enter() *os.Root {
	if v.holder == nobody {
		return nil
	}
	root, err := os.OpenRoot(v.target(v.holder))
	if err != nil {
		v.wrong("pod %d cannot enter its volume: %v", v.holder, err)
		return nil
	}
	if info, err := root.Stat("."); err != nil || info.Sys().(*syscall.Stat_t).Dev != v.s.device {
		v.wrong("pod %d has something else than its volume: %v", v.holder, err)
		_ = root.Close()
		return nil
	}
	return root
}

// recognise finds out which copy the pod has: the one that was there, or, if that may have
// been removed, a new and empty one.
func (v *volume) recognise() {
	root := v.enter()
	if root == nil {
		return
	}
	defer root.Close()
	mark, err := root.ReadFile(markName)
	switch {
	case err == nil && v.mark != "" && string(mark) == v.mark:
		if !v.stirred || v.readOnly {
			return
		}
		for _, name := range entries(v, root, ".") {
			if err := root.RemoveAll(name); err != nil {
				v.wrong("remove what was stirred: %v", err)
			}
		}
	case !errors.Is(err, fs.ErrNotExist):
		v.wrong("the copy is marked %q, want %q: %v", mark, v.mark, err)
		return
	case v.mark != "" && !v.condemned:
		v.wrong("what was written is lost: there is a new copy, and the old one's PersistentVolume was not deleted")
		return
	}
	if v.mark != "" || !v.copied {
		v.note("a new copy")
	}
	v.copied, v.mark, v.stirred, v.tree = true, "", false, tree{files: make(map[string][]byte), hostile: make(map[string]int)}
	if names := entries(v, root, "."); len(names) > 0 {
		v.wrong("a new copy has %q", names)
	}
	if v.readOnly {
		return
	}
	v.marks++
	next := fmt.Sprintf("%s, copy %d", v.handle, v.marks)
	if put(root, markName, []byte(next)) == nil {
		v.mark = next
	}
}

func entries(v *volume, root *os.Root, dir string) (names []string) {
	all, err := fs.ReadDir(root.FS(), dir)
	if err != nil {
		v.wrong("read %s: %v", dir, err)
	}
	for _, entry := range all {
		names = append(names, entry.Name())
	}
	return names
}

// put writes a file that is there as a whole or not at all.
func put(root *os.Root, name string, content []byte) error {
	const unfinished = "unfinished"
	err := root.WriteFile(unfinished, content, 0o644)
	if err == nil {
		err = root.Rename(unfinished, name)
	}
	if err != nil {
		_ = root.Remove(unfinished)
	}
	return err
}

// write has the pod change its files. What fails with a full disk has to change nothing.
func (v *volume) write() {
	root := v.enter()
	if root == nil {
		return
	}
	defer root.Close()
	if v.readOnly {
		if err := root.WriteFile("forbidden", nil, 0o644); !errors.Is(err, unix.EROFS) {
			v.wrong("a pod that may only read writes: %v", err)
		}
		return
	}
	if v.mark == "" {
		return
	}
	before := v.now()
	for range 1 + v.random.IntN(4) {
		v.s.writes.Add(1)
		if err := v.change(root); err != nil && (!errors.Is(err, unix.ENOSPC) || before.hadRoom(v)) {
			v.wrong("write: %v", err)
		}
	}
}

func (v *volume) change(root *os.Root) error {
	names := slices.Sorted(maps.Keys(v.files))
	if len(names) == 0 || len(names) < 40 && v.random.IntN(2) == 0 {
		return v.create(root)
	}
	name := names[v.random.IntN(len(names))]
	switch v.random.IntN(5) {
	case 0: // Another content.
		content := v.bytes()
		if err := put(root, name, content); err != nil {
			return err
		}
		v.files[name] = content
	case 1: // More of it.
		return v.add(root, name)
	case 2: // Another name.
		v.serial++
		to := path.Join(path.Dir(name), fmt.Sprintf("renamed-%d", v.serial))
		if err := root.Rename(name, to); err != nil {
			return err
		}
		v.files[to] = v.files[name]
		delete(v.files, name)
	case 3: // A second name.
		v.serial++
		to := fmt.Sprintf("linked-%d", v.serial)
		if err := root.Link(name, to); err != nil {
			return err
		}
		// Both change together, unless one is replaced: neither is added to.
		v.files[to] = v.files[name]
		delete(v.files, name)
		return root.Remove(name)
	default:
		if err := root.Remove(name); err != nil {
			return err
		}
		delete(v.files, name)
	}
	return nil
}

func (v *volume) create(root *os.Root) error {
	v.serial++
	name := fmt.Sprintf("file-%d", v.serial)
	if v.random.IntN(3) == 0 {
		dir := fmt.Sprintf("dir-%d", v.random.IntN(3))
		if err := root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		name = dir + "/" + name
	}
	content := v.bytes()
	if err := put(root, name, content); err != nil {
		return err
	}
	v.files[name] = content
	return nil
}

// add appends, and cuts off again what did not fit.
func (v *volume) add(root *os.Root, name string) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	more := v.bytes()
	if _, err := file.Write(more); err != nil {
		return errors.Join(err, file.Truncate(int64(len(v.files[name]))))
	}
	v.files[name] = append(slices.Clone(v.files[name]), more...)
	return nil
}

func (v *volume) bytes() []byte {
	return bytes.Repeat([]byte{byte(v.random.Uint32()), '\n', byte(v.random.Uint32())}, v.random.IntN(4<<10))
}

// verify compares what is in the copy with what was written.
func (v *volume) verify() {
	if v.mark == "" || v.stirred || v.holder == nobody && v.condemned {
		return
	}
	at := filepath.Join(v.s.Store, "copies", v.handle)
	if v.holder != nobody {
		at = v.target(v.holder)
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		v.wrong("open the copy: %v", err)
		return
	}
	defer root.Close()
	if mark, err := root.ReadFile(markName); err != nil || string(mark) != v.mark {
		v.wrong("the copy is marked %q, want %q: %v", mark, v.mark, err)
		return
	}
	for name, want := range v.files {
		if got, err := root.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			v.wrong("%s has %d bytes, want the %d that were written: %v", name, len(got), len(want), err)
		}
	}
	for name, want := range v.hostile {
		if got := count(filepath.Join(at, name)); got != want {
			v.wrong("%s has %d entries, want %d", name, got, want)
		}
	}
	for _, name := range entries(v, root, ".") {
		_, isFile := v.files[name]
		_, isHostile := v.hostile[name]
		if !isFile && !isHostile && name != markName && !isDirectory(name) {
			v.wrong("%q is in the copy, and no pod wrote it", name)
		}
	}
}

func isDirectory(name string) bool { return len(name) == len("dir-0") && name[:4] == "dir-" }
