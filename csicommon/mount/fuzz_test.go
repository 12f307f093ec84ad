package mount

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Whatever a kernel answers, a mount that is described has its strings from within the
// answer, and nothing is read beyond it.
func FuzzDecodeStatmount(f *testing.F) {
	answer := func(root, point string, rootAt, pointAt uint32) []byte {
		b := make([]byte, offsetStrings, statmountBufferSmall)
		binary.NativeEndian.PutUint64(b[offsetMask:], statmountWanted)
		binary.NativeEndian.PutUint32(b[offsetRoot:], rootAt)
		binary.NativeEndian.PutUint32(b[offsetPoint:], pointAt)
		return append(b, root+"\x00"+point+"\x00"...)
	}
	f.Add(answer("/r", "/p q", 0, 3)[8:])
	f.Add(answer("/r//deleted", "/p", 0, 12)[8:])
	f.Add(answer("/r", "/p", 0, 1<<31)[8:])
	f.Fuzz(func(t *testing.T, content []byte) {
		b := append(make([]byte, 8), content...) // It begins with its size, which is not asked.
		b = append(b, make([]byte, max(0, statmountBufferSmall-len(b)))...)
		m, err := decodeStatmount(b, statmountWanted)
		if err != nil {
			return
		}
		for _, text := range []string{m.Path, m.Point} {
			if strings.Contains(text, "\x00") || !bytes.Contains(b[offsetStrings:], []byte(text)) {
				t.Errorf("%q is no string of the answer", text)
			}
		}
		if strings.HasSuffix(m.Path, deletedSuffix) && !m.Deleted {
			t.Errorf("%q is not deleted", m.Path)
		}
	})
}

// A path of any bytes comes back from a mount table as the kernel writes it, which is with
// blanks, tabs, newlines and backslashes in octal; and no text makes a table that cannot be
// read panic.
func FuzzMountinfo(f *testing.F) {
	f.Add("/r", "/a b\tc\nd\\e", "rw,ro", "shared:1 master:2", []byte("36 35 98:0 / / rw - x y z\n"))
	f.Add("/r//deleted", "/\\040", "rw", "", []byte("36 35 98:0 /mnt1\\0 / rw master:1\n"))
	escape := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`)
	f.Fuzz(func(t *testing.T, root, point, options, optional string, table []byte) {
		if infos, err := mountinfo.GetMountsFromReader(bytes.NewReader(table), nil); err == nil {
			for _, info := range infos {
				fromInfo(info)
			}
		}
		isWord := func(text string) bool {
			return text != "" && len(strings.Fields(text)) == 1 && text == strings.TrimSpace(text)
		}
		tags := strings.Fields(optional)
		if !strings.HasPrefix(root, "/") || !strings.HasPrefix(point, "/") || strings.ContainsAny(root+point, "\x00\r\v\f") || !isWord(options) ||
			slices.Contains(tags, "-") || strings.Join(tags, " ") != optional || len(root)+len(point) > unix.PathMax {
			return
		}
		line := fmt.Sprintf("36 35 98:7 %s %s %s %s- ext3 /dev/root rw\n", escape.Replace(root), escape.Replace(point), options, strings.TrimLeft(optional+" ", " "))
		infos, err := mountinfo.GetMountsFromReader(strings.NewReader(line), nil)
		if err != nil || len(infos) != 1 {
			t.Fatalf("%q is read as %v, %v", line, infos, err)
		}
		m := fromInfo(infos[0])
		if m.Point != point || strings.TrimSuffix(root, deletedSuffix) != m.Path || m.Deleted != strings.HasSuffix(root, deletedSuffix) {
			t.Errorf("%q is read as %+v", line, m)
		}
		if m.ReadOnly != slices.Contains(strings.Split(options, ","), "ro") {
			t.Errorf("%q is read-only: %t", line, m.ReadOnly)
		}
	})
}

// Options are taken if all are known, and an error names one that is not.
func FuzzParseOptions(f *testing.F) {
	f.Add("ro,noexec,nosuid,nodev,noatime")
	f.Add("ro,,suid")
	f.Add("ro\n,\xff")
	accepted := strings.Split(acceptedOptions, ", ")
	f.Fuzz(func(t *testing.T, text string) {
		flags := strings.Split(text, ",")
		o, err := ParseOptions(flags)
		isKnown := !slices.ContainsFunc(flags, func(flag string) bool { return !slices.Contains(accepted, flag) })
		switch {
		case (err == nil) != isKnown:
			t.Errorf("%q: %v", flags, err)
		case err != nil && (strings.ContainsAny(err.Error(), "\n\x1b\x00") || o != Options{}):
			t.Errorf("%q: %q, %+v", flags, err, o)
		case err == nil && o.ReadOnly != slices.Contains(flags, "ro"):
			t.Errorf("%q: %+v", flags, o)
		}
	})
}
