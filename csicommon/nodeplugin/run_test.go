package nodeplugin

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"liken.sh/csicommon/server"
)

// station is a standalone plugin in directories of a test's own.
type station struct {
	t       *testing.T
	options Options

	mu      sync.Mutex
	cluster string
	order   []string
}

func newStation(t *testing.T) *station {
	t.Helper()
	dir := t.TempDir()
	return &station{t: t, options: Options{
		Endpoint: "unix://" + filepath.Join(dir, "csi.sock"), NodeID: "n", Store: filepath.Join(dir, "store"), KubeletDir: dir,
		HTTP: "127.0.0.1:0", Standalone: true, LogLevel: "error", LogFormat: "text",
	}}
}

func (s *station) Usable(context.Context) error   { return nil }
func (s *station) Writable(context.Context) error { return nil }

func (s *station) Cluster() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cluster, nil
}

func (s *station) SetCluster(uid string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cluster = uid
	return nil
}

func (s *station) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = append(s.order, what)
}

// open makes a plugin that listens.
func (s *station) open() *Plugin {
	s.t.Helper()
	p, err := Open(s.t.Context(), Config{Driver: "driver.example", Options: s.options, Scratch: filepath.Join(s.options.Store, "scratch")})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := p.Connect(Connection{}); err != nil {
		s.t.Fatal(err)
	}
	err = p.Listen(Service{Store: s, Register: func(r grpc.ServiceRegistrar) { csi.RegisterNodeServer(r, csi.UnimplementedNodeServer{}) }})
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// What belongs to a plugin begins before its first call and ends after the last one.
func TestTheOrderOfARun(t *testing.T) {
	s := newStation(t)
	p := s.open()
	ctx, stop := context.WithCancel(t.Context())
	err := p.Run(ctx, Work{
		Begin: func(context.Context) error { s.note("begin"); return nil },
		Behind: []func(context.Context){func(behind context.Context) {
			if err := server.Probe(behind, p.socket); err != nil {
				t.Errorf("it is not served: %v", err)
			}
			s.note("served")
			stop()
			<-behind.Done()
			s.note("behind ends")
		}},
		Leave: func() { s.note("leave") },
		End: func() {
			if err := server.Probe(t.Context(), p.socket); err == nil {
				t.Error("it is still served")
			}
			s.note("end")
		},
		Close: func() error { s.note("close"); return nil },
	})
	if err != nil {
		t.Errorf("Run = %v", err)
	}
	if want := []string{"begin", "served", "leave", "end", "behind ends", "close"}; !slices.Equal(s.order, want) {
		t.Errorf("the order is %q, want %q", s.order, want)
	}
	if s.cluster != standaloneCluster {
		t.Errorf("the store's cluster is %q", s.cluster)
	}
}

// A start that fails late leaves no socket behind.
func TestABeginThatFails(t *testing.T) {
	s := newStation(t)
	p := s.open()
	errBegin := errors.New("it cannot")
	if err := p.Run(t.Context(), Work{Begin: func(context.Context) error { return errBegin }}); !errors.Is(err, errBegin) {
		t.Errorf("Run = %v", err)
	}
	s.open() // The address is free.
}
