package apiserver

// Request is one request as the API server understands it.
type Request struct {
	// Verb is get, list, watch, create, patch or delete.
	Verb string
	// Group is the API group, empty for the core's.
	Group     string
	Resource  string
	Namespace string
	Name      string
	// Page is the number of the page a list asks for, from 1.
	Page  int
	Path  string
	Query string
}

func (s *Server) record(request Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, request)
}

// Requests returns those received since New or the last ForgetRequests.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.log...)
}

// Count returns how many requests had verb and resource, such as "list" and
// "persistentvolumes".
func (s *Server) Count(verb, resource string) int {
	count := 0
	for _, request := range s.Requests() {
		if request.Verb == verb && request.Resource == resource {
			count++
		}
	}
	return count
}

// ForgetRequests empties the log.
func (s *Server) ForgetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = nil
}
