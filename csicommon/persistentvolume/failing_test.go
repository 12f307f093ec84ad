package persistentvolume_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/persistentvolume"
)

// No failure of the API server makes a volume that is there look gone, however
// long it lasts; what happened meanwhile is learnt afterwards.
func TestFailuresChangeNothing(t *testing.T) {
	empty := func([]byte) []byte {
		return []byte(`{"kind":"PersistentVolumeList","apiVersion":"v1","metadata":{"resourceVersion":""},"items":[]}`)
	}
	tests := map[string]apiserver.Action{
		"500":                      apiserver.Refuse(500),
		"503":                      apiserver.Refuse(503),
		"429":                      apiserver.Refuse(429),
		"401":                      apiserver.Refuse(401),
		"403":                      apiserver.Refuse(403),
		"404":                      apiserver.Refuse(404),
		"410":                      apiserver.Refuse(410),
		"a proxy's 404 page":       apiserver.Page(404, "<html>no such site</html>"),
		"a proxy's 200 page":       apiserver.Page(200, "<html>log in</html>"),
		"an empty object":          apiserver.Page(200, "{}"),
		"an empty body":            apiserver.Page(200, ""),
		"a list without a version": apiserver.Edit(empty),
		"the connection is cut":    apiserver.Cut(),
		"the body is cut":          apiserver.Truncate(),
		"no answer at all":         apiserver.Hold(nil),
		"the field selector ignored": apiserver.Page(200, `{"kind":"PersistentVolumeList","metadata":{"resourceVersion":"9"},
			"items":[{"metadata":{"name":"p0","uid":"1"}}]}`),
	}
	for name, action := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, v *viewing) {
				v.server.PutVolume(apiserver.Volume("p1", driver, "h1"))
				v.Follow("p1")
				v.reported("p1 present")

				heal := v.server.Inject(apiserver.Fault{Verb: "list", Do: action})
				v.server.DropWatches()
				v.Follow("p2")
				time.Sleep(time.Hour)
				v.reported()
				v.is("p1", persistentvolume.Present)
				v.is("p2", persistentvolume.Unknown)
				if n := v.server.Count("list", "persistentvolumes"); n > 2*60*60/15 {
					t.Errorf("%d tries in an hour", n)
				}

				v.server.DeleteVolume("p1")
				v.server.PutVolume(apiserver.Volume("p2", driver, "h2"))
				heal()
				time.Sleep(2 * time.Minute)
				v.is("p1", persistentvolume.Absent)
				v.is("p2", persistentvolume.Present)
				if len(v.log.said) != 2 {
					t.Errorf("the log has %q, want one line when it fails and one when it works again", v.log.said)
				}
			})
		})
	}
}

func TestWatchFailures(t *testing.T) {
	line := `{"type":"%","object":{"kind":"PersistentVolume","metadata":{"name":"p1","uid":"1"}}}` + "\n"
	tests := map[string]apiserver.Action{
		"500":                        apiserver.Refuse(500),
		"410":                        apiserver.Refuse(410),
		"cut":                        apiserver.Cut(),
		"ends at once":               apiserver.Page(200, ""),
		"a page of HTML":             apiserver.Page(200, "<html>"),
		"an ERROR":                   apiserver.Page(200, `{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":500,"message":"x"}}`),
		"an ERROR of 410":            apiserver.Page(200, `{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410}}`),
		"another volume's deletion":  apiserver.Page(200, strings.NewReplacer("%", "DELETED", `"p1"`, `"p2"`).Replace(line)),
		"a deletion cut in the line": apiserver.Page(200, strings.Replace(line, "%", "DELETED", 1)[:40]),
		"an unknown type":            apiserver.Page(200, strings.Replace(line, "%", "GONE", 1)),
	}
	for name, action := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, v *viewing) {
				heal := v.server.Inject(apiserver.Fault{Verb: "watch", Do: action})
				v.server.PutVolume(apiserver.Volume("p1", driver, "h1"))
				v.Follow("p1")
				v.reported("p1 present")
				time.Sleep(10 * time.Minute)
				v.reported()
				if n := v.server.Count("watch", "persistentvolumes"); n > 80 {
					t.Errorf("%d watches in ten minutes", n)
				}
				v.server.DeleteVolume("p1") // the lists tell
				time.Sleep(time.Minute)
				v.reported("p1 absent")
				heal()
				time.Sleep(time.Minute)
				v.server.PutVolume(apiserver.Volume("p1", driver, "h1"))
				v.reported("p1 present")
			})
		})
	}
}

// What happens between two watches is not missed, even when the API server has
// forgotten it.
func TestWatchDropped(t *testing.T) {
	for name, forget := range map[string]bool{"resumed": false, "history gone": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, v *viewing) {
				first := v.server.PutVolume(apiserver.Volume("p1", driver, "h1"))
				v.Follow("p1")
				v.reported("p1 present")
				v.server.DropWatches()
				synctest.Wait()
				v.server.DeleteVolume("p1")
				second := v.server.PutVolume(apiserver.Volume("p1", driver, "h1"))
				if forget {
					v.server.Compact()
				}
				time.Sleep(2 * time.Second)
				v.reported("p1 present")
				if got := v.is("p1", persistentvolume.Present); got.UID != second || first == second {
					t.Errorf("it has the UID %q, want that of the one made again, %q", got.UID, second)
				}
				if n := v.server.Watches(); n != 1 {
					t.Errorf("%d watches, want 1", n)
				}
			})
		})
	}
}

// A version that expires between the list and its watch.
func TestWatchFromAnExpiredVersion(t *testing.T) {
	bubble(t, func(_ *testing.T, v *viewing) {
		v.server.PutVolume(apiserver.Volume("p1", driver, "h1"))
		hold := make(chan struct{})
		v.server.Inject(apiserver.Fault{Verb: "watch", Times: 1, Do: apiserver.Hold(hold)})
		v.Follow("p1")
		v.reported("p1 present")
		v.server.DeleteVolume("p1")
		v.server.Compact()
		close(hold)
		v.reported()
		time.Sleep(2 * time.Second)
		v.reported("p1 absent")
	})
}

func TestRead(t *testing.T) {
	bubble(t, func(t *testing.T, v *viewing) {
		v.server.PutVolume(apiserver.Volume("p1", driver, "h1"))
		if got, found, err := v.Read(t.Context(), "p1"); err != nil || !found || got.Handle != "h1" {
			t.Errorf("p1 is %+v, %v, %v", got, found, err)
		}
		if got, found, err := v.Read(t.Context(), "p2"); err != nil || found {
			t.Errorf("p2 is %+v, %v, %v", got, found, err)
		}
		for _, name := range []string{"", "a/b", ".."} {
			if _, _, err := v.Read(t.Context(), name); err == nil {
				t.Errorf("reading %q is no error", name)
			}
		}
		for name, action := range map[string]apiserver.Action{
			"500": apiserver.Refuse(500), "403": apiserver.Refuse(403), "cut": apiserver.Cut(),
			"truncated": apiserver.Truncate(), "page": apiserver.Page(404, "<html>"), "{}": apiserver.Page(200, "{}"),
		} {
			heal := v.server.Inject(apiserver.Fault{Verb: "get", Do: action})
			if _, _, err := v.Read(t.Context(), "p2"); err == nil {
				t.Errorf("%s: reading is no error", name)
			}
			heal()
		}
	})
}

func TestCluster(t *testing.T) {
	bubble(t, func(t *testing.T, v *viewing) {
		if uid, err := v.Cluster(t.Context()); err != nil || uid != "cluster-1" {
			t.Errorf("the cluster is %q, %v", uid, err)
		}
		v.server.SetCluster("")
		if uid, err := v.Cluster(t.Context()); err == nil {
			t.Errorf("a cluster without a UID is %q", uid)
		}
		v.server.Inject(apiserver.Fault{Resource: "namespaces", Do: apiserver.Refuse(404)})
		if _, err := v.Cluster(t.Context()); err == nil || errors.Is(err, persistentvolume.ErrOtherCluster) {
			t.Errorf("a namespace that cannot be read gives %v", err)
		}
	})
}
