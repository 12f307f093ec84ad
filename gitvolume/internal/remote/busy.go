package remote

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// clockTick is the unit in which the kernel tells of processor time: USER_HZ is 100 on
// all that the driver runs on.
const clockTick = 10 * time.Millisecond

// leastWork is the share of a processor that a run which works by itself takes at least.
// One that waits for a server, and wakes up to look, takes far less.
const leastWork = 0.1

// busy tells whether the processes of a group work while nothing comes from the remote:
// git looks through all objects that a fetch has brought before it takes the refs, and
// says nothing meanwhile, for minutes in a large repository.
type busy struct {
	group string
	spent time.Duration
	// waits are the pages that had to come from a disk.
	waits uint64
	since time.Time
}

// goesOn tells whether the group has worked since the last call.
func (b *busy) goesOn() bool {
	spent, waits, now := time.Duration(0), uint64(0), time.Now()
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		content, _ := os.ReadFile(file)
		// A program's name may hold blanks and parentheses.
		fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
		const group, faults, user, system = 2, 9, 11, 12
		if len(fields) <= system || string(fields[group]) != b.group {
			continue
		}
		waits += number(fields[faults])
		spent += time.Duration(number(fields[user])+number(fields[system])) * clockTick
	}
	worked := spent-b.spent >= clockTick && (spent-b.spent).Seconds() >= leastWork*now.Sub(b.since).Seconds()
	read := waits > b.waits
	first := b.since.IsZero()
	b.spent, b.waits, b.since = spent, waits, now
	return !first && (worked || read)
}

// number reads what the kernel writes.
func number(text []byte) uint64 {
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
