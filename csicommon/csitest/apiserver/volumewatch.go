package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
)

// Watches is how many watches are open.
func (s *Server) Watches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches
}

// DropWatches ends all open watches, as a restart of the API server does.
func (s *Server) DropWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.dropped)
	s.dropped = make(chan struct{})
}

// watchVolumes streams the changes after the version asked for. One older than
// the history is answered with a line of type ERROR and code 410.
func (s *Server) watchVolumes(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	selector, err := nameOf(query)
	if err != nil {
		refuse(w, err)
		return
	}
	after, err := strconv.Atoi(query.Get("resourceVersion"))
	if err != nil {
		refuse(w, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion %q: this server watches from a version only", query.Get("resourceVersion"))))
		return
	}
	end := make(<-chan time.Time)
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		timer := time.NewTimer(time.Duration(seconds) * time.Second)
		defer timer.Stop()
		end = timer.C
	}

	s.mu.Lock()
	s.watches++
	dropped := s.dropped
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watches--
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for {
		lines, newest, expired, changed := s.since(after, selector)
		if expired {
			sendExpired(w)
			return
		}
		after = newest
		for _, line := range lines {
			send(w, line.kind, line.volume.object())
		}
		select {
		case <-changed:
		case <-dropped:
			return
		case <-end:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// since returns the matching changes after version, the version now, and the
// channel that is closed at the next change.
func (s *Server) since(version int, selector fields.Selector) (lines []change, newest int, expired bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.floor {
		return nil, 0, true, nil
	}
	for _, line := range s.history {
		if line.volume.version > version && selector.Matches(fields.Set{"metadata.name": line.volume.name}) {
			lines = append(lines, line)
		}
	}
	return lines, s.version, false, s.changed
}

func send(w http.ResponseWriter, kind string, object []byte) {
	line, err := json.Marshal(struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}{kind, object})
	if err != nil {
		panic(fmt.Sprintf("marshal a watch event: %v", err))
	}
	_, _ = w.Write(append(line, '\n'))
	_ = http.NewResponseController(w).Flush()
}

func sendExpired(w http.ResponseWriter) {
	status := apierrors.NewResourceExpired("too old resource version").Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, err := json.Marshal(status)
	if err != nil {
		panic(fmt.Sprintf("marshal a Status: %v", err))
	}
	send(w, "ERROR", body)
}
