package apiserver

import (
	"net/http"
	"net/http/httptest"
	"slices"
)

// Fault says which requests are answered otherwise. An empty field matches
// every request.
type Fault struct {
	// Verb and Resource are as in Request.
	Verb     string
	Resource string
	Name     string
	// Page is the number, from 1, of the page of a list.
	Page int
	// Times is how many requests it takes; 0: all, until it is removed.
	Times int
	// Do answers the request.
	Do Action
}

// Action answers a request; next is what the server would have answered.
type Action func(w http.ResponseWriter, r *http.Request, next http.Handler)

type injected struct {
	Fault
	left int
}

// Inject adds a fault and returns the function that removes it. The first
// matching fault has the request.
func (s *Server) Inject(f Fault) (remove func()) {
	fault := &injected{Fault: f, left: f.Times}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fault)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = slices.DeleteFunc(s.faults, func(other *injected) bool { return other == fault })
	}
}

func (s *Server) fault(request Request) Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fault := range s.faults {
		if !fault.matches(request) {
			continue
		}
		if fault.Times > 0 && fault.left == 0 {
			continue
		}
		fault.left--
		return fault.Do
	}
	return nil
}

func (f *Fault) matches(request Request) bool {
	return (f.Verb == "" || f.Verb == request.Verb) &&
		(f.Resource == "" || f.Resource == request.Resource) &&
		(f.Name == "" || f.Name == request.Name) &&
		(f.Page == 0 || f.Page == request.Page)
}

// Refuse answers with code and a Status, as the API server refuses.
func Refuse(code int) Action {
	return func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		refuse(w, statusOf(code, parse(r)))
	}
}

// Page answers with code and a body that is no Status, as a proxy in between does.
func Page(code int, body string) Action {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

// Cut ends the connection without an answer.
func Cut() Action {
	return func(http.ResponseWriter, *http.Request, http.Handler) {
		panic(http.ErrAbortHandler)
	}
}

// CutAfter does what was asked, then ends the connection without an answer.
func CutAfter() Action {
	return func(_ http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
}

// Edit answers with the body that edit makes of the right one.
func Edit(edit func(body []byte) []byte) Action {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(edit(answer.Body.Bytes()))
	}
}

// Truncate answers with the first half of the right body, as a whole answer.
func Truncate() Action {
	return Edit(func(body []byte) []byte { return body[:len(body)/2] })
}

// Hold waits for release to be closed, or for the client to go away, and then
// answers as usual.
func Hold(release <-chan struct{}) Action {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		select {
		case <-release:
			next.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}
}
