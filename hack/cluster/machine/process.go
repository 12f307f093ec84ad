package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is a process that cannot be mistaken for another: a number alone is
// given again to the next one.
type process struct {
	PID int
	// Started is in clock ticks since the host booted.
	Started uint64
	// Boot tells one boot of the host from another, since both others start over.
	Boot string
}

// errGone says that no such process runs.
var errGone = errors.New("no such process")

// observe looks the process up by number. A zombie counts as gone: it has neither
// memory nor namespaces.
func observe(pid int) (process, error) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if errors.Is(err, fs.ErrNotExist) {
		return process{}, errGone
	}
	if err != nil {
		return process{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return process{}, fmt.Errorf("tell this boot of the host from others: %w", err)
	}
	state, started, err := parseStat(string(stat))
	if err != nil {
		return process{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	if state == "Z" || state == "X" {
		return process{}, errGone
	}
	return process{PID: pid, Started: started, Boot: strings.TrimSpace(string(boot))}, nil
}

// parseStat reads state and start time of /proc/<pid>/stat. The name in it is the
// process's to choose, spaces and brackets included, so fields count from its end.
func parseStat(stat string) (state string, started uint64, err error) {
	_, rest, found := cutLast(stat, ")")
	fields := strings.Fields(rest)
	if !found || len(fields) < 20 {
		return "", 0, fmt.Errorf("unknown format %q", stat)
	}
	started, err = strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("read the start time: %w", err)
	}
	return fields[0], started, nil
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}

// recorded is the process that the file names, if it still runs.
func recorded(file string) (process, error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return process{}, errGone
	}
	if err != nil {
		return process{}, fmt.Errorf("read which process runs: %w", err)
	}
	var known process
	if err := json.Unmarshal(content, &known); err != nil {
		return process{}, fmt.Errorf("read which process runs from %s: %w", file, err)
	}
	now, err := observe(known.PID)
	if err != nil {
		return process{}, err
	}
	if now != known {
		return process{}, errGone
	}
	return known, nil
}

func (p process) record(file string) error {
	content, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode which process runs: %w", err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		return fmt.Errorf("record which process runs: %w", err)
	}
	return nil
}
