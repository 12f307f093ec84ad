package worktree

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/process"
)

// A file is written through a memory map before and after it was read, without a word to the
// kernel in between: of the second write no event tells, and of its own accord no time stamp.
func TestAMapThatIsWrittenAfterTheFileWasRead(t *testing.T) {
	for _, row := range []struct {
		name string
		size int
	}{
		{"small", 4096},
		{"large", 2 << 20},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := newVolume(t)
			v.onDiskThatIsOne()
			v.write("f", strings.Repeat("0", row.size))
			v.commit()
			memory := v.mapped("f", row.size)
			for _, written := range []byte("123") {
				memory[row.size/2] = written
				// As after a quiesce: a file that was just written is read once more anyway.
				process.Await(t, "the file to be no news", func() bool { return !v.seen("f").Racy(time.Now()) })
				v.wantsChanges(v.commit(), "f")
				if got := v.content("f")[row.size/2]; got != written {
					t.Fatalf("committed %q, the application sees %q", got, written)
				}
			}
			v.wantsChanges(v.commit())
		})
	}
}

// onDiskThatIsOne skips the test where files are in memory alone: nothing tells there that
// a page was written twice.
func (v *volume) onDiskThatIsOne() {
	v.t.Helper()
	var system unix.Statfs_t
	v.do(unix.Statfs(v.dir, &system))
	if system.Type == unix.TMPFS_MAGIC {
		v.t.Skip("files are on a tmpfs")
	}
}

// mapped is a file as an application has it in its memory.
func (v *volume) mapped(path string, size int) []byte {
	v.t.Helper()
	file, err := os.OpenFile(v.at(path), os.O_RDWR, 0)
	v.do(err)
	defer file.Close()
	memory, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	v.do(err)
	v.t.Cleanup(func() { _ = unix.Munmap(memory) })
	return memory
}

func (v *volume) seen(path string) Stat {
	v.t.Helper()
	cursor := must(v.tree.Cursor())
	defer cursor.Close()
	stat, err := cursor.Here().Stat(path)
	v.do(err)
	return StatOf(stat)
}
