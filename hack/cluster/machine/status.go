package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"liken.sh/hack/cluster/initd"
)

func (m *Machine) statusFile() string {
	return filepath.Join(m.cluster.Root(m.Name), initd.StatusFile)
}

// Status is how the machine's services are; none before it has booted.
func (m *Machine) Status() ([]initd.Status, error) {
	content, err := os.ReadFile(m.statusFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the status of %s: %w", m.Name, err)
	}
	var status []initd.Status
	if err := json.Unmarshal(content, &status); err != nil {
		return nil, fmt.Errorf("read the status of %s: %w", m.Name, err)
	}
	return status, nil
}

// LogFile is the service's log, on the host.
func (m *Machine) LogFile(service string) string {
	return filepath.Join(m.cluster.Root(m.Name), "var/log", service+".log")
}

// BootLog is the end of what the machine's first process said, which is nothing
// where it boots.
func (m *Machine) BootLog() string { return tail(m.file("boot.log"), 10) }

// maxStarts is how often a service may start before it counts as one that cannot
// run: an API server ends when etcd is not there yet, a kubelet when containerd is
// not.
const maxStarts = 8

// Failure says why the machine will not come up, with the end of the log that
// tells, or nil while it still may.
func (m *Machine) Failure() error {
	if _, running := m.PID(); !running {
		return fmt.Errorf("%s ended; the command up starts it again. It last said: %q", m.Name, m.BootLog())
	}
	status, err := m.Status()
	if err != nil {
		return err
	}
	for _, service := range status {
		if service.Starts >= maxStarts {
			return m.Explain(service)
		}
	}
	return nil
}

// Explain is an error that names the service and shows the end of its log.
func (m *Machine) Explain(service initd.Status) error {
	file := m.LogFile(service.Name)
	how := "is running"
	if service.LastEnd != "" {
		how = fmt.Sprintf("was started %d times and last ended with %s", service.Starts, service.LastEnd)
	}
	return fmt.Errorf("%s on %s %s; the end of %s:\n%s", service.Name, m.Name, how, file, tail(file, 15))
}

// tail is the end of a file, or why it cannot be read.
func tail(file string, lines int) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}
