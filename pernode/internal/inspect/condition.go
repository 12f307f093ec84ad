package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"liken.sh/pernode/internal/copies"
)

// fullBelow is the share of a file system's blocks or inodes, in 1/n, that has to
// be free.
const fullBelow = 100

// Severity says what a condition means for who uses the copy.
type Severity int

// A copy can be used with Degraded; with Inaccessible it cannot be read.
const (
	Degraded Severity = iota
	Inaccessible
)

// The reasons of conditions, as NodeGetVolumeHealth reports them.
const (
	CopyUnreadable   = "CopyUnreadable"
	CopyDeleted      = "CopyDeleted"
	TargetNotMounted = "TargetNotMounted"
	StoreFull        = "StoreFull"
	StoreReadOnly    = "StoreReadOnly"
)

// Condition is one thing that is wrong with a copy.
type Condition struct {
	Severity Severity
	Reason   string
	Message  string
}

// judge says what is wrong with a copy whose state was found out or not, sorted
// by reason.
func judge(store Store, volume string, state copies.State, err error) []Condition {
	if err != nil {
		return []Condition{{Inaccessible, CopyUnreadable, err.Error()}}
	}
	var conditions []Condition
	if state.Deleted {
		conditions = append(conditions, Condition{Degraded, CopyDeleted,
			"somebody moved or removed the copy's directory while a pod has it: what the pod writes is not in the store"})
	}
	if state.Unmounted {
		conditions = append(conditions, Condition{Degraded, TargetNotMounted,
			fmt.Sprintf("somebody unmounted %q, the pod has to be started again", state.Hold.Target)})
	}
	if state.Exists {
		conditions = append(conditions, judgeDir(store, volume)...)
	}
	slices.SortFunc(conditions, func(a, b Condition) int { return cmp.Compare(a.Reason, b.Reason) })
	return conditions
}

func judgeDir(store Store, volume string) []Condition {
	dir, err := store.Open(volume)
	if errors.Is(err, copies.ErrNoCopy) {
		return nil
	}
	if err != nil {
		return []Condition{{Inaccessible, CopyUnreadable, err.Error()}}
	}
	defer dir.Close()
	if _, err := dir.ReadDir(1); err != nil && !errors.Is(err, io.EOF) {
		return []Condition{{Inaccessible, CopyUnreadable, err.Error()}}
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &st); err != nil {
		return []Condition{{Inaccessible, CopyUnreadable, err.Error()}}
	}
	return judgeSpace(st)
}

func judgeSpace(st unix.Statfs_t) []Condition {
	var conditions []Condition
	if st.Flags&unix.ST_RDONLY != 0 {
		conditions = append(conditions, Condition{Degraded, StoreReadOnly, "the store's file system is read-only"})
	}
	switch {
	case st.Blocks > 0 && st.Bavail < st.Blocks/fullBelow:
		conditions = append(conditions, Condition{Degraded, StoreFull, "less than 1 % of the store's file system is available"})
	case st.Files > 0 && st.Ffree < st.Files/fullBelow:
		conditions = append(conditions, Condition{Degraded, StoreFull, "less than 1 % of the store's inodes are free"})
	}
	return conditions
}
