package cluster

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// counted is how kubectl describe shows an Event that was counted up.
var counted = regexp.MustCompile(`\(x(\d+) over `)

// Described returns the lines that `kubectl describe` has of the driver's Events with
// that reason. The kind is one such as pod.
func (s *Space) Described(kind, name, reason string) []string {
	s.T.Helper()
	var found []string
	for line := range strings.Lines(s.kube.Run(s.T, "kubectl", "--namespace", s.Name, "describe", kind, name)) {
		if strings.Contains(line, reason) && strings.Contains(line, s.Driver.Name) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// Count is how often the one line of the pod says that it happened.
func (s *Space) Count(pod, reason string) (int, error) {
	s.T.Helper()
	lines := s.Described("pod", pod, reason)
	if len(lines) == 0 {
		return 0, errors.New("there is no " + reason)
	}
	if len(lines) > 1 {
		s.T.Fatalf("there is more than one line:\n%s", strings.Join(lines, "\n"))
	}
	if match := counted.FindStringSubmatch(lines[0]); match != nil {
		return strconv.Atoi(match[1])
	}
	return 1, nil
}
