package main

import (
	"bytes"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"liken.sh/csicommon/quote"
	"liken.sh/hack/cluster/layout"
	"liken.sh/hack/cluster/machine"
)

// other is a cluster with another state that runs on this machine.
type other struct {
	state string
	// program is what started it.
	program string
}

// isAlone fails while another cluster runs: two would have the same control groups and
// the same interface of the host.
func (p *program) isAlone() error {
	others, err := p.others()
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return others[0].inTheWay()
	}
	return nil
}

// others are those clusters that run.
func (p *program) others() ([]other, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []other
	for _, file := range lines {
		line, _ := os.ReadFile(file) // one that has ended meanwhile is no machine
		if o := clusterOf(line); o.state != "" && o.state != p.cluster.State {
			found = append(found, o)
		}
	}
	return found, nil
}

// clusterOf is the cluster whose control machine has this command line, the zero value
// for any other process.
func clusterOf(line []byte) other {
	arguments := bytes.Split(line, []byte{0})
	if len(arguments) < 3 || string(arguments[1]) != machine.BootCommand {
		return other{}
	}
	state, found := strings.CutSuffix(string(arguments[2]), "/"+layout.Control+"/machine.json")
	if !found {
		return other{}
	}
	return other{state: state, program: string(arguments[0])}
}

// inTheWay lets the person see first whose it is: to end it deletes it.
func (o other) inTheWay() error {
	return fmt.Errorf("another cluster runs on this machine, which can have one: %s. With %s=%s set, bin/cluster status shows it and the other commands use it; end it only if it is yours, by make cluster-down",
		o.origin(), layout.StateVariable, quote.Shell(o.state))
}

// origin is what can be found out about who started it.
func (o other) origin() string {
	text := "it was started"
	if info, err := os.Stat(filepath.Join(o.state, layout.Control, "machine.json")); err == nil {
		text += info.ModTime().Format(" on " + time.DateOnly + " at 15:04")
	}
	checkout := filepath.Dir(filepath.Dir(o.program))
	text += " from " + checkout
	if owner := ownerOf(checkout); owner != "" {
		text += ", which belongs to " + owner
	}
	return text
}

// ownerOf is the name of a file's owner, or their number, "" where there is no file.
func ownerOf(name string) string {
	info, err := os.Stat(name)
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	number := strconv.Itoa(int(stat.Uid))
	if owner, err := user.LookupId(number); err == nil {
		return owner.Username
	}
	return "user " + number
}
