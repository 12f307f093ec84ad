package process

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// ProcessorTime is what the process has used of the processors, in all its threads.
func (p *Process) ProcessorTime() time.Duration { return p.processorTime(2) }

// FamilyTime is ProcessorTime and that of its children which have ended.
func (p *Process) FamilyTime() time.Duration { return p.processorTime(4) }

// processorTime sums the first of the fields about a process's use of the processors: its
// own, as a user and in the kernel, and the same of its children.
func (p *Process) processorTime(number int) time.Duration {
	p.t.Helper()
	content, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid()) + "/stat")
	if err != nil {
		p.t.Fatal(err)
	}
	// After the name, which may hold anything, come the fields from the third on.
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	var ticks int64
	for _, field := range fields[11 : 11+number] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		ticks += n
	}
	const perSecond = 100 // On every platform of Linux.
	return time.Duration(ticks) * time.Second / perSecond
}

// Anonymous is how much memory the process has, in bytes, without that of files.
func (p *Process) Anonymous() int64 { return p.memory("RssAnon") }

// OfFiles is how much of files the process has in memory, in bytes: mostly of its program. The
// kernel can drop all of it.
func (p *Process) OfFiles() int64 { return p.memory("RssFile") }

func (p *Process) memory(kind string) int64 {
	p.t.Helper()
	content, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid()) + "/status")
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(content, []byte("\n"+kind+":"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		p.t.Fatalf("%q has no memory of its own", p.cmd.Args)
	}
	kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return kib << 10
}
