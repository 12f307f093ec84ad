package nodeplugin

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// The memory of a plugin is dumped by no crash.
func TestNoDump(t *testing.T) {
	isDumped := func() int {
		got, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	before := isDumped()
	if err := keepMemory(); err != nil {
		t.Fatal(err)
	}
	want := 0
	if os.Geteuid() != 0 {
		want = before
	}
	if got := isDumped(); got != want {
		t.Errorf("it is %d, want %d", got, want)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(before), 0, 0, 0); err != nil {
		t.Fatal(err)
	}
}
