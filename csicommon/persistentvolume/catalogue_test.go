package persistentvolume_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/apiclient"
	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/persistentvolume"
)

// cataloguing is a Catalogue in a bubble, which keeps the handles of volumes with a URL,
// and what it told.
type cataloguing struct {
	*persistentvolume.Catalogue[string]
	t      *testing.T
	server *apiserver.Server
	log    *lines
	// kept and currents are read when the bubble is still.
	kept     map[string]string
	currents int
}

func catalogue(t *testing.T, test func(c *cataloguing)) {
	synctest.Test(t, func(t *testing.T) {
		server := apiserver.New()
		client, err := apiclient.ForConfig(server.InProcess())
		if err != nil {
			t.Fatal(err)
		}
		c := &cataloguing{t: t, server: server, log: &lines{Handler: slog.DiscardHandler}, kept: map[string]string{}}
		c.Catalogue = persistentvolume.NewCatalogue(persistentvolume.CatalogueConfig[string]{
			Client: client, Log: slog.New(c.log), Driver: driver,
			Keep: func(v persistentvolume.Volume) (string, bool) { return v.Handle, v.Attributes["url"] != "" },
			Changed: func(name string, kept string, isKept bool) {
				if had, has := c.kept[name]; isKept == has && had == kept {
					t.Errorf("%s is told again", name)
				}
				delete(c.kept, name)
				if isKept {
					c.kept[name] = kept
				}
			},
			Current: func() { c.currents++ },
		})
		test(c)
	})
}

// runs starts it, until the test ends.
func (c *cataloguing) runs() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); c.Run(ctx) }()
	c.t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
}

// put puts in a volume with a URL, or without.
func (c *cataloguing) put(name, url string) {
	pv := apiserver.Volume(name, driver, "h-"+name)
	if url != "" {
		pv.Spec.CSI.VolumeAttributes = map[string]string{"url": url}
	}
	c.server.PutVolume(pv)
}

// has wants it to keep the volumes of these names, whole.
func (c *cataloguing) has(names ...string) {
	c.t.Helper()
	synctest.Wait()
	if got := slices.Sorted(maps.Keys(c.kept)); strings.Join(got, " ") != strings.Join(names, " ") {
		c.t.Errorf("it keeps %v, want %v", got, names)
	}
}

func (c *cataloguing) isRead(want bool) {
	c.t.Helper()
	synctest.Wait()
	if err := c.Unread(); (err == nil) != want || err != nil && !errors.Is(err, persistentvolume.ErrUnread) {
		c.t.Errorf("unread is %v, want read %v", err, want)
	}
}

func TestCatalogue(t *testing.T) {
	catalogue(t, func(c *cataloguing) {
		crowd(c.server, 1000)
		c.put("a", "https://x")
		c.put("b", "")
		c.isRead(false)
		c.runs()
		c.isRead(true)
		c.has("a")
		c.put("b", "https://x")
		c.put("c", "https://x")
		c.server.PutVolume(apiserver.Volume("other", "other.example", "h"))
		c.has("a", "b", "c")
		c.put("a", "")
		c.server.DeleteVolume("c")
		c.server.DeleteVolume("other")
		c.has("b")
		time.Sleep(24 * time.Hour)
		c.put("d", "https://x")
		c.has("b", "d")
		if pages, watches := c.server.Count("list", "persistentvolumes"), c.server.Count("watch", "persistentvolumes"); pages != 5 || watches > 24*6+1 {
			t.Errorf("%d pages and %d watches in a day, want one list of 5", pages, watches)
		}
		if c.currents != 1 || len(c.log.said) != 0 {
			t.Errorf("it was current %d times, and said %q", c.currents, c.log.said)
		}
	})
}

// What happens between two watches is learnt, also when the API server has forgotten it.
func TestCatalogueWatchDropped(t *testing.T) {
	for name, forget := range map[string]bool{"resumed": false, "history gone": true} {
		t.Run(name, func(t *testing.T) {
			catalogue(t, func(c *cataloguing) {
				c.put("a", "https://x")
				c.put("b", "https://x")
				c.runs()
				c.server.DropWatches()
				synctest.Wait()
				c.server.DeleteVolume("a")
				c.put("c", "https://x")
				if forget {
					c.server.Compact()
				}
				time.Sleep(5 * time.Second)
				c.has("b", "c")
				c.isRead(true)
				if lists := c.server.Count("list", "persistentvolumes"); lists != 1 && !forget {
					t.Errorf("%d lists, want one", lists)
				}
			})
		})
	}
}

// No failure makes a volume look gone; that the cluster is not read is known as long.
func TestCatalogueFailures(t *testing.T) {
	for name, action := range map[string]apiserver.Action{
		"500": apiserver.Refuse(500), "403": apiserver.Refuse(403), "429": apiserver.Refuse(429), "cut": apiserver.Cut(),
		"HTML": apiserver.Page(200, "<html>"), "{}": apiserver.Page(200, "{}"), "404": apiserver.Page(404, "<html>"),
		"half": apiserver.Truncate(),
	} {
		t.Run(name, func(t *testing.T) {
			catalogue(t, func(c *cataloguing) {
				c.put("a", "https://x")
				heal := c.server.Inject(apiserver.Fault{Resource: "persistentvolumes", Verb: "list", Do: action})
				c.runs()
				time.Sleep(time.Minute)
				c.isRead(false)
				c.has()
				heal()
				time.Sleep(time.Minute)
				c.isRead(true)
				c.has("a")

				heal = c.server.Inject(apiserver.Fault{Resource: "persistentvolumes", Do: action})
				c.server.Compact()
				c.server.DropWatches()
				time.Sleep(time.Hour)
				c.isRead(false)
				c.has("a")
				if n := len(c.server.Requests()); n > 2*60*60/15 {
					t.Errorf("%d tries in an hour", n)
				}
				c.server.DeleteVolume("a")
				c.put("b", "https://x")
				heal()
				time.Sleep(time.Minute)
				c.isRead(true)
				c.has("b")
				if c.currents != 2 || len(c.log.said) != 4 {
					t.Errorf("it was current %d times, and said %q", c.currents, c.log.said)
				}
			})
		})
	}
}

// A watch whose answers cannot be understood has all be read again.
func TestCatalogueStrangeAnswers(t *testing.T) {
	for name, line := range map[string]string{
		"an ERROR of 410":     `{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410}}`,
		"an ERROR":            `{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":500,"message":"x"}}`,
		"an unknown type":     `{"type":"GONE","object":{"kind":"PersistentVolume","metadata":{"name":"a","resourceVersion":"1"}}}`,
		"another kind":        `{"type":"DELETED","object":{"kind":"Pod","metadata":{"name":"a","resourceVersion":"1"}}}`,
		"one of no version":   `{"type":"DELETED","object":{"kind":"PersistentVolume","metadata":{"name":"a"}}}`,
		"one cut in the line": `{"type":"DELETED","object":{"kind":"PersistentVolume","metad`,
	} {
		t.Run(name, func(t *testing.T) {
			catalogue(t, func(c *cataloguing) {
				c.put("a", "https://x")
				c.server.Inject(apiserver.Fault{Verb: "watch", Times: 3, Do: apiserver.Page(200, line+"\n")})
				c.runs()
				time.Sleep(time.Minute)
				c.has("a")
				c.isRead(true)
				c.put("b", "https://x")
				c.has("a", "b")
			})
		})
	}
}

// A bookmark moves the version on from which the next watch starts.
func TestCatalogueBookmark(t *testing.T) {
	catalogue(t, func(c *cataloguing) {
		c.put("a", "https://x")
		c.server.Inject(apiserver.Fault{Verb: "watch", Times: 1, Do: apiserver.Page(200, fmt.Sprintln(
			`{"type":"BOOKMARK","object":{"kind":"PersistentVolume","metadata":{"resourceVersion":"100000"}}}`))})
		c.runs()
		time.Sleep(5 * time.Second)
		c.has("a")
		requests := c.server.Requests()
		if last := requests[len(requests)-1]; last.Verb != "watch" || !strings.Contains(last.Query, "resourceVersion=100000") {
			t.Errorf("the last request is %+v", last)
		}
	})
}

// An item that is another volume's by now is not taken for the one that was kept.
func TestCatalogueOfAnotherDriver(t *testing.T) {
	catalogue(t, func(c *cataloguing) {
		c.put("a", "https://x")
		c.runs()
		c.has("a")
		pv := apiserver.Volume("a", "other.example", "h")
		pv.Spec.CSI.VolumeAttributes = map[string]string{"url": "https://x"}
		c.server.PutVolume(pv)
		c.has()
		nfs := apiserver.Volume("nfs", "", "")
		nfs.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{}
		c.server.PutVolume(nfs)
		c.has()
	})
}
