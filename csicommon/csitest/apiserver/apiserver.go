// Package apiserver is an in-memory stand-in for the part of a Kubernetes API
// server that the drivers use: PersistentVolumes (get, list with pages, watch, merge-patch
// of annotations), VolumeAttributesClasses (get), Secrets (get), the namespace kube-system
// (get) and Events (create, get, list, patch, delete).
//
// It answers as the real one does where that matters to a client: versions,
// continue tokens that expire, Status bodies, validation of Events. Tests put
// objects in with methods, and break answers with Inject.
//
// It is for tests and must never grow what no test of a driver needs.
package apiserver

import (
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Server is the fake. It is an http.Handler, and an http.RoundTripper that
// answers in the process; it is safe for concurrent use.
type Server struct {
	mu      sync.Mutex
	version int
	cluster string
	volumes map[string]*stored
	// history is what watches replay; floor is the version it begins after.
	history []change
	floor   int
	// snapshots are the lists that continue tokens refer to, by version.
	snapshots map[int][]*stored
	// changed is closed and replaced when history grows, dropped when all
	// watches are to end.
	changed chan struct{}
	dropped chan struct{}
	watches int
	events  map[string]map[string]*corev1.Event
	classes map[string]*storagev1.VolumeAttributesClass
	secrets map[string]*corev1.Secret // by namespace/name
	faults  []*injected
	log     []Request
	serving *serving
}

// New makes a server of an empty cluster with the UID "cluster-1".
func New() *Server {
	return &Server{
		cluster:   "cluster-1",
		volumes:   map[string]*stored{},
		snapshots: map[int][]*stored{},
		changed:   make(chan struct{}),
		dropped:   make(chan struct{}),
		events:    map[string]map[string]*corev1.Event{},
		classes:   map[string]*storagev1.VolumeAttributesClass{},
		secrets:   map[string]*corev1.Secret{},
		version:   100,
		floor:     100,
	}
}

// SetCluster makes uid the UID of the namespace kube-system: another cluster.
func (s *Server) SetCluster(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cluster = uid
}

// ServeHTTP logs the request, lets an injected fault have it, else answers it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := parse(r)
	s.record(request)
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, request) })
	if fault := s.fault(request); fault != nil {
		fault(w, r, answer)
		return
	}
	answer(w, r)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, request Request) {
	switch {
	case request.Resource == "persistentvolumes" && request.Namespace == "":
		s.answerVolumes(w, r, request)
	case request.Resource == "namespaces" && request.Verb == "get":
		s.answerNamespace(w, request.Name)
	case request.Resource == classes && request.Verb == "get":
		s.answerClass(w, request.Name)
	case request.Resource == secrets && request.Namespace != "" && request.Verb == "get":
		s.answerSecret(w, request.Namespace, request.Name)
	case request.Resource == "events" && request.Namespace != "":
		s.answerEvents(w, r, request)
	default:
		http.Error(w, "404 page not found", http.StatusNotFound)
	}
}

func (s *Server) answerNamespace(w http.ResponseWriter, name string) {
	s.mu.Lock()
	uid := s.cluster
	s.mu.Unlock()
	if name != "kube-system" {
		refuse(w, notFound("namespaces", name))
		return
	}
	namespace := corev1.Namespace{}
	namespace.Kind, namespace.APIVersion = "Namespace", "v1"
	namespace.Name, namespace.UID, namespace.ResourceVersion = name, uidOf(uid), "1"
	write(w, http.StatusOK, namespace)
}

// parse reads the verb and the object of a request as the API server does.
func parse(r *http.Request) Request {
	request := Request{Path: r.URL.Path, Query: r.URL.RawQuery, Page: 1}
	rest, found := strings.CutPrefix(r.URL.Path, "/api/v1/")
	if !found {
		if rest, found = strings.CutPrefix(r.URL.Path, "/apis/storage.k8s.io/v1/"); !found {
			return request
		}
		request.Group = "storage.k8s.io"
	}
	parts := strings.Split(rest, "/")
	if parts[0] == "namespaces" && len(parts) > 2 {
		request.Namespace = parts[1]
		parts = parts[2:]
	}
	request.Resource = parts[0]
	if len(parts) == 2 {
		request.Name = parts[1]
	}
	query := r.URL.Query()
	switch r.Method {
	case http.MethodGet:
		request.Verb = "list"
		if request.Name != "" {
			request.Verb = "get"
		}
		if query.Get("watch") == "true" || query.Get("watch") == "1" {
			request.Verb = "watch"
		}
	case http.MethodPost:
		request.Verb = "create"
	default:
		request.Verb = strings.ToLower(r.Method)
	}
	if token, err := decodeToken(query.Get("continue")); err == nil {
		request.Page = token.Page
	}
	return request
}
