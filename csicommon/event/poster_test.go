package event_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/apiclient"
	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/event"
)

const (
	driver = "per-node.liken.sh"
	reason = "PerNodeMountFailed"
	words  = `make the target "/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/p1/mount": not a directory`
)

func web(namespace string) event.Object { return event.Pod(namespace, "web-0", "uid-of-"+namespace) }

// running is a Poster that runs, in the bubble of the test.
type running struct {
	*event.Poster
	dropped atomic.Int64
	stop    context.CancelFunc
	ended   chan struct{}
}

func run(t *testing.T, server *apiserver.Server, node string) *running {
	t.Helper()
	client, err := apiclient.ForConfig(server.InProcess())
	if err != nil {
		t.Fatal(err)
	}
	p := &running{ended: make(chan struct{})}
	p.Poster = event.New(event.Config{
		Client: client, Component: driver, Node: node,
		Log:     slog.New(slog.DiscardHandler),
		Dropped: func(n int) { p.dropped.Add(int64(n)) },
	})
	ctx, stop := context.WithCancel(t.Context())
	p.stop = func() { stop(); <-p.ended }
	go func() { defer close(p.ended); p.Run(ctx) }()
	t.Cleanup(p.stop)
	return p
}

// counts are the counts of the Events of namespace, the oldest first.
func counts(server *apiserver.Server, namespace string) string {
	var counts []int32
	for _, e := range server.Events(namespace) {
		counts = append(counts, e.Count)
	}
	return fmt.Sprint(counts)
}

func expect(t *testing.T, server *apiserver.Server, namespace, want string) {
	t.Helper()
	synctest.Wait()
	if got := counts(server, namespace); got != want {
		t.Errorf("Events in %s have the counts %s, want %s", namespace, got, want)
	}
}

// bubble runs test in a synctest bubble, on a server made there.
func bubble(t *testing.T, test func(*testing.T, *apiserver.Server)) {
	synctest.Test(t, func(t *testing.T) { test(t, apiserver.New()) })
}

func post(p event.Recorder, times int, about event.Object) {
	for range times {
		p.Post(about, event.Warning, reason, words)
	}
}

// The steps of a mount that keeps failing: kubernetes/kubernetes#88226 (repeats
// not recognised) and #6289 (the counted Event is no longer on the server).
func TestRepeatsCountUpOneEvent(t *testing.T) {
	bubble(t, func(t *testing.T, server *apiserver.Server) {
		p := run(t, server, "node-a")
		for range 30 {
			post(p, 1, web("shop"))
			time.Sleep(2 * time.Second)
		}
		expect(t, server, "shop", "[30]")

		server.DeleteEvent("shop", server.Events("shop")[0].Name)
		for range 2 {
			post(p, 1, web("shop"))
			time.Sleep(time.Second)
		}
		expect(t, server, "shop", "[2]")

		p.stop()
		p = run(t, server, "node-a")
		post(p, 1, web("shop"))
		expect(t, server, "shop", "[3]")
		post(p, 1, web("shop"))
		expect(t, server, "shop", "[4]")

		time.Sleep(11 * time.Minute)
		post(p, 1, web("shop"))
		expect(t, server, "shop", "[4 1]")
		if n := p.dropped.Load(); n != 0 {
			t.Errorf("%d were dropped", n)
		}
	})
}

// An hour of retries is one line such as (x37 over 1h): the window follows the
// last occurrence, not the first.
func TestWindowFollowsTheLastOccurrence(t *testing.T) {
	bubble(t, func(t *testing.T, server *apiserver.Server) {
		p := run(t, server, "node-a")
		for range 7 {
			post(p, 1, web("shop"))
			time.Sleep(10 * time.Minute)
		}
		expect(t, server, "shop", "[7]")
		e := server.Events("shop")[0]
		if over := e.LastTimestamp.Sub(e.FirstTimestamp.Time); over != time.Hour {
			t.Errorf("it covers %v, want 1h", over)
		}
	})
}

func TestRestartAfterTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T, server *apiserver.Server) {
		p := run(t, server, "node-a")
		post(p, 3, web("shop"))
		expect(t, server, "shop", "[3]")
		p.stop()
		time.Sleep(11 * time.Minute)
		post(run(t, server, "node-a"), 1, web("shop"))
		expect(t, server, "shop", "[3 1]")
	})
}

func TestWhatIsAnEventOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, server *apiserver.Server) {
		p := run(t, server, "node-a")
		for range 3 { // interleaved
			post(p, 1, web("shop"))
			post(p, 1, web("blog"))
			p.Post(web("shop"), event.Warning, "PerNodeVolumeHeld", words)
			p.Post(web("shop"), event.Normal, reason, words)
			p.Post(web("shop"), event.Warning, reason, "another message")
			p.Post(event.Pod("shop", "web-0", "a later pod"), event.Warning, reason, words)
			time.Sleep(time.Second)
		}
		expect(t, server, "shop", "[3 3 3 3 3]")
		expect(t, server, "blog", "[3]")
	})
}

// After a restart the Events of others, which the selectors let through or not,
// are not counted up.
func TestRestartFindsOnlyItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, server *apiserver.Server) {
		p := run(t, server, "node-a")
		p.Post(web("shop"), event.Warning, reason, words+" (another)")
		p.Post(web("shop"), event.Warning, "PerNodeVolumeHeld", words)
		expect(t, server, "shop", "[1 1]")
		p.stop()
		post(run(t, server, "node-b"), 2, web("shop"))
		expect(t, server, "shop", "[1 1 2]")
		post(run(t, server, "node-a"), 5, web("shop"))
		expect(t, server, "shop", "[1 1 2 5]")
	})
}

func TestTheEventItself(t *testing.T) {
	bubble(t, func(t *testing.T, server *apiserver.Server) {
		p := run(t, server, "node-a")
		post(p, 2, web("shop"))
		synctest.Wait()
		e := server.Events("shop")[0]
		if e.Source != (corev1.EventSource{Component: driver, Host: "node-a"}) ||
			e.ReportingController != driver || e.ReportingInstance != "node-a" {
			t.Errorf("it comes from %+v, %q, %q", e.Source, e.ReportingController, e.ReportingInstance)
		}
		about := corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "shop", Name: "web-0", UID: "uid-of-shop"}
		if e.InvolvedObject != about {
			t.Errorf("it is about %+v", e.InvolvedObject)
		}
		if e.Type != "Warning" || e.Reason != reason || e.Message != words {
			t.Errorf("it says %s %s %q", e.Type, e.Reason, e.Message)
		}
	})
}

func TestNamesTheAPIServerTakes(t *testing.T) {
	tests := map[string]struct {
		about event.Object
		in    string
	}{
		"a pod with the longest name":         {event.Pod("shop", strings.Repeat("a", 253), "1"), "shop"},
		"a dot where the long name is cut":    {event.Pod("shop", strings.Repeat("a", 235)+"."+strings.Repeat("b", 17), "1"), "shop"},
		"dashes where the long name is cut":   {event.Pod("shop", strings.Repeat("a", 230)+strings.Repeat("-", 20)+"b", "1"), "shop"},
		"an object of the cluster":            {event.Volume("p1", "1"), "default"},
		"a claim":                             {event.Claim("shop", "data", "1"), "shop"},
		"without a UID and an API version":    {event.Object{Kind: "Pod", Namespace: "shop", Name: "web-0"}, "shop"},
		"a comma and an equals sign in a UID": {event.Pod("shop", "web-0", `1,reason=x\`), "shop"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *apiserver.Server) {
				post(run(t, server, strings.Repeat("n", 253)), 2, test.about)
				expect(t, server, test.in, "[2]")
				post(run(t, server, strings.Repeat("n", 253)), 1, test.about)
				expect(t, server, test.in, "[3]")
			})
		})
	}
}

func TestMessageOnTheServer(t *testing.T) {
	bubble(t, func(t *testing.T, server *apiserver.Server) {
		p := run(t, server, "node-a")
		for range 3 {
			p.Post(web("shop"), event.Warning, reason, "caf\xe9\n"+strings.Repeat("漢", 1000))
			time.Sleep(time.Second)
		}
		expect(t, server, "shop", "[3]")
		if got := server.Events("shop")[0].Message; len(got) > 1024 || !strings.HasPrefix(got, `caf\xe9\n漢`) {
			t.Errorf("the message is %q", got)
		}
	})
}

func TestRealConnection(t *testing.T) {
	server := apiserver.New()
	client, err := apiclient.New(server.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	p := event.New(event.Config{Client: client, Component: driver, Node: "node-a", Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(ctx) }()
	post(p, 5, web("shop"))
	for deadline := time.Now().Add(30 * time.Second); counts(server, "shop") != "[5]"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the counts are %s, want [5]", counts(server, "shop"))
		}
	}
	stop()
	<-ended
	if n := server.Count("watch", "events"); n != 0 {
		t.Errorf("%d watches", n)
	}
}

func TestLog(t *testing.T) {
	var out strings.Builder
	recorder := event.NewLog(slog.New(slog.NewTextHandler(&out, nil)))
	recorder.Post(web("shop"), event.Warning, reason, "caf\xe9")
	recorder.Post(event.Claim("shop", "data", ""), event.Normal, "GitVolumeArmed", "armed")
	recorder.Post(event.Volume("p1", ""), event.Normal, "GitVolumeArmed", "armed")
	for _, want := range []string{
		`level=WARN msg=event reason=PerNodeMountFailed message=caf\xe9 pod=shop/web-0`,
		`level=INFO msg=event reason=GitVolumeArmed message=armed claim=shop/data`,
		`message=armed volume=p1`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, out.String())
		}
	}
	var _ event.Recorder = recorder
	var _ event.Recorder = (*event.Poster)(nil)
}
