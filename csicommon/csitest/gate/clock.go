package gate

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Clock is the call by which a program asks for the time of day, and not for how much time
// went by. A gate does not ask a Decide about it, but answers as SetClock says.
const Clock uint32 = unix.SYS_CLOCK_GETTIME

// AskKernel changes a Go program's file so that the program asks the kernel what time it is,
// and so goes through a gate. Others read that from memory that the kernel shows them.
func AskKernel(program string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	// The runtime calls the kernel if there is no function of that name in the memory.
	changed := content
	for _, name := range []string{"__vdso_clock_gettime", "__kernel_clock_gettime"} {
		changed = bytes.ReplaceAll(changed, []byte(name), bytes.Repeat([]byte{'_'}, len(name)))
	}
	if bytes.Equal(changed, content) {
		return fmt.Errorf("%s is no Go program that reads the time from memory", program)
	}
	return os.WriteFile(program, changed, 0o755) //nolint:gosec // A program is to be run.
}

// SetClock has the time of day of the program and its children be off by that from now on.
// None is before 1970.
func (g *Gate) SetClock(off time.Duration) { g.off.Store(int64(off)) }

// Jump is by how much the clock of a machine is off at times.
func Jump(random *rand.Rand) time.Duration {
	const day = 24 * time.Hour
	jumps := []time.Duration{
		-time.Second, time.Second, -time.Minute, time.Minute, // It is set right.
		-2 * time.Hour, time.Hour, // It is another zone's.
		-40 * day, 400 * day,
		-time.Since(time.Unix(10, 0)), // It has no battery.
		14 * 365 * day,                // After January 2038.
	}
	return jumps[random.IntN(len(jumps))]
}

// tell answers who asks for the time of day, unless that is right or nobody is left to be told.
func (g *Gate) tell(n notification) (told bool) {
	off := time.Duration(g.off.Load())
	if off == 0 {
		return false
	}
	is := time.Now().Add(off)
	answer, err := unix.TimeToTimespec(is)
	if err != nil || is.Unix() < 0 {
		answer = unix.Timespec{}
	}
	const size = int(unsafe.Sizeof(answer))
	local := []unix.Iovec{{Base: (*byte)(unsafe.Pointer(&answer)), Len: uint64(size)}}
	written, err := unix.ProcessVMWritev(int(n.pid), local, []unix.RemoteIovec{{Base: uintptr(n.arguments[1]), Len: size}}, 0)
	return err == nil && written == size
}
