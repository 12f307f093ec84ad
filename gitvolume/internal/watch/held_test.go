package watch

import (
	"fmt"
	"testing"
)

func TestParseWatch(t *testing.T) {
	for line, want := range map[string]*Inode{
		"inotify wd:3 ino:9e7e sdev:800013 mask:fce ignored_mask:0 fhandle-bytes:8 fhandle-type:1 f_handle:7e9e0000640d1b6d": {Number: 0x9e7e, Device: 0x800013},
		"inotify wd:1 ino:ffffffffffffffff sdev:fe00000 mask:fce ignored_mask:0 ":                                            {Number: 1<<64 - 1, Device: 0xfe00000},
		"inotify wd:1 ino:1ffffffffffffffff sdev:fe00000 mask:fce ignored_mask:0":                                            nil,
		"inotify wd:1 ino:1 sdev:1":          nil,
		"inotify wd:1 ino: sdev:1 mask:fce":  nil,
		"inotify wd:1 ino:X sdev:1 mask:fce": nil,
		"pos:	0":                             nil,
		"":                                   nil,
		"tfd:        5 events:       19 data:        5  pos:0 ino:414 sdev:e": nil,
	} {
		inode, mask, ok := parseWatch([]byte(line))
		if ok != (want != nil) || ok && (inode != *want || mask != 0xfce) {
			t.Errorf("%q: %+v %x %t", line, inode, mask, ok)
		}
	}
}

func FuzzParseWatch(f *testing.F) {
	f.Add("inotify wd:3 ino:9e7e sdev:800013 mask:fce ignored_mask:0", uint64(1), uint64(2), uint64(3))
	f.Add("inotify wd", uint64(0), uint64(0), uint64(1)<<63)
	f.Fuzz(func(t *testing.T, line string, number, device, mask uint64) {
		parseWatch([]byte(line))
		written := fmt.Sprintf("inotify wd:1 ino:%x sdev:%x mask:%x %s", number, device, mask, line)
		inode, got, ok := parseWatch([]byte(written))
		if !ok || inode.Number != number || inode.Device != device || got != mask {
			t.Fatalf("%q: %+v %x %t", written, inode, got, ok)
		}
	})
}
