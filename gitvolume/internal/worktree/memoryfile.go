package worktree

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The file is a header, the root folder, and the checksum (CRC-32C) of both. A folder
// is its own facts, its files and the folders in it; numbers are varints but for the
// time stamps, of which every byte differs.
const (
	memoryHeader = "git-csi-memory 1\n"
	// maxDepth is how many names a path may have; history commits none that is longer.
	maxDepth = 2048
)

// ErrBroken is wrapped by the error of a text that is no remembered tree.
var ErrBroken = errors.New("not a remembered tree")

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// WriteTo writes the memory, so that ReadMemory gives it again.
func (m *Memory) WriteTo(to io.Writer) (int64, error) {
	w := &memoryWriter{to: to, buffer: make([]byte, 0, 64<<10)}
	w.buffer = append(w.buffer, memoryHeader...)
	w.folder(m.top())
	w.flush()
	w.buffer = binary.LittleEndian.AppendUint32(w.buffer, w.sum)
	w.flush()
	if w.err != nil {
		return w.written, fmt.Errorf("write what is remembered of the tree: %w", w.err)
	}
	return w.written, nil
}

// memoryWriter collects what it is given and writes it in large pieces.
type memoryWriter struct {
	to      io.Writer
	buffer  []byte
	sum     uint32
	written int64
	err     error
}

func (w *memoryWriter) flush() {
	if w.err == nil {
		n, err := w.to.Write(w.buffer)
		w.written, w.err = w.written+int64(n), err
	}
	w.sum = crc32.Update(w.sum, castagnoli(), w.buffer)
	w.buffer = w.buffer[:0]
}

func (w *memoryWriter) number(n uint64) { w.buffer = binary.AppendUvarint(w.buffer, n) }

func (w *memoryWriter) name(name string) {
	w.number(uint64(len(name)))
	w.buffer = append(w.buffer, name...)
}

func (w *memoryWriter) stat(s Stat) {
	w.number(uint64(s.Size))
	w.buffer = binary.LittleEndian.AppendUint64(w.buffer, uint64(s.Modified))
	w.buffer = binary.LittleEndian.AppendUint64(w.buffer, uint64(s.Changed))
	w.number(s.Inode)
	w.number(uint64(s.Mode))
	w.number(uint64(s.Owner))
	w.number(uint64(s.Group))
}

func (w *memoryWriter) folder(f *folder) {
	w.stat(f.stat)
	w.buffer = append(w.buffer, f.module[:]...)
	w.number(uint64(f.left))
	w.number(uint64(len(f.files)))
	for i := range f.files {
		file := &f.files[i]
		racy := byte(0)
		if file.racy {
			racy = 1
		}
		w.name(file.name)
		w.stat(file.stat)
		w.buffer = append(w.buffer, file.blob[:]...)
		w.buffer = append(w.buffer, byte(file.mode), byte(file.left), file.passes, racy)
		if len(w.buffer) > cap(w.buffer)/2 {
			w.flush()
		}
	}
	w.number(uint64(len(f.subs)))
	for _, sub := range f.subs {
		w.name(sub.name)
		w.folder(sub)
	}
}

// ReadMemory reads what WriteTo wrote. The error of anything else, as what a crash left
// half-written, wraps ErrBroken: then the memory of the tree's commit (see With) will
// do, and every file is read again.
func ReadMemory(from io.Reader) (*Memory, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return nil, fmt.Errorf("read what is remembered of the tree: %w", err)
	}
	body, isMemory := bytes.CutPrefix(text, []byte(memoryHeader))
	if !isMemory || len(body) < 4 {
		return nil, fmt.Errorf("read the header of %d bytes: %w", len(text), ErrBroken)
	}
	end := len(text) - 4
	if crc32.Checksum(text[:end], castagnoli()) != binary.LittleEndian.Uint32(text[end:]) {
		return nil, fmt.Errorf("read %d bytes, of which the checksum is wrong: %w", len(text), ErrBroken)
	}
	r := &memoryReader{rest: text[len(memoryHeader):end]}
	root := r.folder("", 0)
	if r.failed || len(r.rest) > 0 {
		return nil, fmt.Errorf("read %d bytes of which the checksum is right: %w", len(text), ErrBroken)
	}
	return &Memory{root: root}, nil
}

// memoryReader reads from its rest, and nothing but zeros once it failed.
type memoryReader struct {
	rest   []byte
	failed bool
}

// bytes gives the next n bytes, or nil.
func (r *memoryReader) bytes(n uint64) []byte {
	if r.failed || n > uint64(len(r.rest)) {
		r.failed = true
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *memoryReader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.failed = true
	}
	if r.failed {
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// below is a number that has to be less than the limit.
func (r *memoryReader) below(limit uint64) uint64 {
	n := r.number()
	if n >= limit {
		r.failed = true
		return 0
	}
	return n
}

func (r *memoryReader) fixed() int64 {
	if eight := r.bytes(8); eight != nil {
		return int64(binary.LittleEndian.Uint64(eight))
	}
	return 0
}

func (r *memoryReader) stat() Stat {
	return Stat{
		Size: int64(r.number()), Modified: r.fixed(), Changed: r.fixed(), Inode: r.number(),
		Mode: uint32(r.below(1 << 32)), Owner: uint32(r.below(1 << 32)), Group: uint32(r.below(1 << 32)),
	}
}

// name is one of a directory, after the one given.
func (r *memoryReader) name(after string) string {
	name := string(r.bytes(r.number()))
	if name <= after || !isName(name) {
		r.failed = true
	}
	return name
}

// folder reads one at that depth.
func (r *memoryReader) folder(name string, depth int) *folder {
	f := &folder{name: name, stat: r.stat()}
	copy(f.module[:], r.bytes(uint64(len(f.module))))
	f.left = Reason(r.below(1 << 8))
	previous := ""
	for n := r.number(); n > 0 && !r.failed; n-- {
		f.files = append(f.files, r.file(previous))
		previous = f.files[len(f.files)-1].name
	}
	previous = ""
	for n := r.number(); n > 0 && !r.failed; n-- {
		if depth >= maxDepth {
			r.failed = true
			break
		}
		previous = r.name(previous)
		if f.file(previous) != nil {
			r.failed = true
		}
		f.subs = append(f.subs, r.folder(previous, depth+1))
	}
	return f.compact().counted()
}

func (r *memoryReader) file(after string) file {
	f := file{name: r.name(after), stat: r.stat()}
	copy(f.blob[:], r.bytes(uint64(len(f.blob))))
	if flags := r.bytes(4); flags != nil {
		f.mode, f.left, f.passes, f.racy = tracked(flags[0]), Reason(flags[1]), flags[2], flags[3] == 1
		if f.mode > symlink || flags[3] > 1 {
			r.failed = true
		}
	}
	return f
}
