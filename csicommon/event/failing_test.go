package event_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/event"
)

// 30 occurrences while the API server is slow are one Event with count 30, and
// nobody waited for it.
func TestSlowServer(t *testing.T) {
	bubble(t, func(t *testing.T, server *apiserver.Server) {
		release := make(chan struct{})
		server.Inject(apiserver.Fault{Resource: "events", Do: apiserver.Hold(release)})
		p := run(t, server, "node-a")
		began := time.Now()
		post(p, 1, web("shop"))
		synctest.Wait() // the first is on its way
		post(p, 29, web("shop"))
		if waited := time.Since(began); waited != 0 {
			t.Errorf("Post waited %v", waited)
		}
		close(release)
		expect(t, server, "shop", "[30]")
		if n := server.Count("create", "events") + server.Count("patch", "events"); n != 2 {
			t.Errorf("%d writes for 30 occurrences, want 2", n)
		}
	})
}

func TestOverflowIsCounted(t *testing.T) {
	bubble(t, func(t *testing.T, server *apiserver.Server) {
		release := make(chan struct{})
		server.Inject(apiserver.Fault{Resource: "events", Do: apiserver.Hold(release)})
		p := run(t, server, "node-a")
		post(p, 1, web("shop"))
		synctest.Wait()
		for i := range 1010 {
			p.Post(event.Pod("blog", fmt.Sprintf("web-%d", i), "1"), event.Warning, reason, words)
		}
		if n := p.dropped.Load(); n != 10 {
			t.Errorf("%d were dropped, want 10", n)
		}
		close(release)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(server.Events("blog")); n != 1000 {
			t.Errorf("%d Events were posted, want 1000", n)
		}
	})
}

func TestErrorsOfTheServer(t *testing.T) {
	tests := map[string]struct {
		fault   apiserver.Fault
		counts  string
		dropped int64
	}{
		"creating refused":                  {apiserver.Fault{Verb: "create", Do: apiserver.Refuse(403)}, "[]", 4},
		"creating refused once":             {apiserver.Fault{Verb: "create", Times: 1, Do: apiserver.Refuse(422)}, "[3]", 1},
		"creating broken":                   {apiserver.Fault{Verb: "create", Do: apiserver.Refuse(500)}, "[]", 4},
		"creating broken for a moment":      {apiserver.Fault{Verb: "create", Times: 1, Do: apiserver.Refuse(503)}, "[4]", 0},
		"created, the answer lost":          {apiserver.Fault{Verb: "create", Times: 1, Do: apiserver.CutAfter()}, "[4]", 0},
		"counting up broken":                {apiserver.Fault{Verb: "patch", Do: apiserver.Refuse(500)}, "[1]", 3},
		"counting up broken for a moment":   {apiserver.Fault{Verb: "patch", Times: 1, Do: apiserver.Cut()}, "[4]", 0},
		"counted up, the answer lost":       {apiserver.Fault{Verb: "patch", Times: 1, Do: apiserver.CutAfter()}, "[4]", 0},
		"listing forbidden":                 {apiserver.Fault{Verb: "list", Do: apiserver.Refuse(403)}, "[4]", 0},
		"listing unknown":                   {apiserver.Fault{Verb: "list", Do: apiserver.Refuse(404)}, "[4]", 0},
		"listing not allowed":               {apiserver.Fault{Verb: "list", Do: apiserver.Refuse(405)}, "[4]", 0},
		"listing broken until it is mended": {apiserver.Fault{Verb: "list", Times: 2, Do: apiserver.Refuse(500)}, "[3]", 1},
		"a list that is none":               {apiserver.Fault{Verb: "list", Times: 1, Do: apiserver.Truncate()}, "[3]", 1},
		"a page of a proxy":                 {apiserver.Fault{Times: 2, Do: apiserver.Page(502, "<html>")}, "[3]", 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *apiserver.Server) {
				server.Inject(test.fault)
				p := run(t, server, "node-a")
				for range 4 {
					post(p, 1, web("shop"))
					time.Sleep(time.Minute)
				}
				expect(t, server, "shop", test.counts)
				if n := p.dropped.Load(); n != test.dropped {
					t.Errorf("%d were dropped, want %d", n, test.dropped)
				}
			})
		})
	}
}

// Listing is for what an earlier process may have posted: a driver that runs for
// longer than the window asks for none.
func TestListsOnlyAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T, server *apiserver.Server) {
		p := run(t, server, "node-a")
		time.Sleep(11 * time.Minute)
		post(p, 1, web("shop"))
		post(p, 1, web("blog"))
		expect(t, server, "shop", "[1]")
		if n := server.Count("list", "events"); n != 0 {
			t.Errorf("%d lists, want none", n)
		}
	})
}

// More Events than are remembered: a forgotten one is looked for again.
func TestForgottenEventIsFound(t *testing.T) {
	bubble(t, func(t *testing.T, server *apiserver.Server) {
		p := run(t, server, "node-a")
		time.Sleep(11 * time.Minute)
		post(p, 1, web("shop"))
		for i := range 1000 {
			p.Post(event.Pod("blog", fmt.Sprintf("web-%d", i), "1"), event.Warning, reason, words)
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		post(p, 1, web("shop"))
		time.Sleep(time.Minute)
		expect(t, server, "shop", "[2]")
	})
}

func TestStop(t *testing.T) {
	t.Run("what waits is posted", func(t *testing.T) {
		bubble(t, func(t *testing.T, server *apiserver.Server) {
			release := make(chan struct{})
			server.Inject(apiserver.Fault{Resource: "events", Do: apiserver.Hold(release)})
			p := run(t, server, "node-a")
			post(p, 1, web("shop"))
			synctest.Wait()
			post(p, 4, web("blog"))
			time.AfterFunc(time.Second, func() { close(release) })
			p.stop()
			expect(t, server, "shop", "[1]")
			expect(t, server, "blog", "[4]")
			if n := p.dropped.Load(); n != 0 {
				t.Errorf("%d were dropped", n)
			}
		})
	})
	t.Run("but not for long", func(t *testing.T) {
		bubble(t, func(t *testing.T, server *apiserver.Server) {
			server.Inject(apiserver.Fault{Resource: "events", Do: apiserver.Hold(nil)})
			p := run(t, server, "node-a")
			post(p, 1, web("shop"))
			synctest.Wait()
			post(p, 4, web("blog"))
			began := time.Now()
			p.stop()
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("stopping took %v", took)
			}
			post(p, 1, web("shop"))
			if n := p.dropped.Load(); n != 6 {
				t.Errorf("%d were dropped, want 6", n)
			}
		})
	})
}
