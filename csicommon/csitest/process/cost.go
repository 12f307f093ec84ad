package process

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// ProcessorTime is what the process has used of the processors, in all its threads.
func (p *Process) ProcessorTime() time.Duration {
	p.t.Helper()
	content, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid()) + "/stat")
	if err != nil {
		p.t.Fatal(err)
	}
	// After the name, which may hold anything, come the fields from the third on.
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		ticks += n
	}
	const perSecond = 100 // On every platform of Linux.
	return time.Duration(ticks) * time.Second / perSecond
}
