package persistentvolume_test

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/apiclient"
	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/persistentvolume"
)

const driver = "per-node.liken.sh"

// viewing is a View in a bubble, on a server made there, and what it reported.
type viewing struct {
	*persistentvolume.View
	t      *testing.T
	server *apiserver.Server
	log    *lines
	stop   func()

	mu      sync.Mutex
	changed []string
}

// lines collects the messages of a log.
type lines struct {
	slog.Handler
	mu   sync.Mutex
	said []string
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, r.Message)
	return nil
}

func view(t *testing.T, server *apiserver.Server) *viewing {
	t.Helper()
	client, err := apiclient.ForConfig(server.InProcess())
	if err != nil {
		t.Fatal(err)
	}
	v := &viewing{t: t, server: server, log: &lines{Handler: slog.DiscardHandler}}
	v.View = persistentvolume.New(persistentvolume.Config{
		Client: client, Log: slog.New(v.log), Annotations: []string{"git.liken.sh/pull-requested-at"},
		Changed: func(name string) {
			v.mu.Lock()
			defer v.mu.Unlock()
			_, state := v.Get(name)
			v.changed = append(v.changed, name+" "+state.String())
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); v.Run(ctx) }()
	v.stop = func() { cancel(); <-ended }
	t.Cleanup(v.stop)
	return v
}

// bubble runs test in a synctest bubble.
func bubble(t *testing.T, test func(t *testing.T, v *viewing)) {
	synctest.Test(t, func(t *testing.T) { test(t, view(t, apiserver.New())) })
}

// reported expects that Changed was called like this since the last time.
func (v *viewing) reported(want ...string) {
	v.t.Helper()
	synctest.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(want) != len(v.changed) || (len(want) > 0 && !reflect.DeepEqual(v.changed, want)) {
		v.t.Errorf("changed %q, want %q", v.changed, want)
	}
	v.changed = nil
}

func (v *viewing) is(name string, want persistentvolume.State) persistentvolume.Volume {
	v.t.Helper()
	synctest.Wait()
	volume, state := v.Get(name)
	if state != want {
		v.t.Errorf("%s is %v, want %v", name, state, want)
	}
	return volume
}

// Who joins in following a name is told what is known of it, once there is something.
func TestTell(t *testing.T) {
	bubble(t, func(t *testing.T, v *viewing) {
		v.server.PutVolume(apiserver.Volume("p1", driver, "h1"))
		v.Tell("p1")
		v.reported()
		v.Follow("p1")
		v.reported("p1 present")
		v.server.Inject(apiserver.Fault{Resource: "persistentvolumes", Do: apiserver.Refuse(500)})
		v.Follow("p2")
		v.reported()
		v.Tell("p1")
		v.Tell("p2")
		v.reported("p1 present")
		v.Unfollow("p1")
		v.Tell("p1")
		v.reported()
		v.stop()
	})
}

func TestLifeOfAVolume(t *testing.T) {
	bubble(t, func(t *testing.T, v *viewing) {
		pv := apiserver.Volume("p1", driver, "h1")
		uid := v.server.PutVolume(pv)
		v.is("p1", persistentvolume.Unknown)
		v.Follow("p1")
		v.Follow("p1")
		v.reported("p1 present")
		got := v.is("p1", persistentvolume.Present)
		want := persistentvolume.Volume{
			Name: "p1", UID: uid, Driver: driver, Handle: "h1", AccessModes: []string{"ReadWriteOnce"},
			ReclaimPolicy: "Retain", ClaimNamespace: "default", ClaimName: "p1",
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("it is %+v, want %+v", got, want)
		}

		pv.Labels = map[string]string{"nothing": "we look at"}
		v.server.PutVolume(pv)
		v.reported()

		class := "fast"
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		pv.Spec.VolumeAttributesClassName = &class
		pv.Annotations = map[string]string{"git.liken.sh/pull-requested-at": "now", "other": "x"}
		v.server.PutVolume(pv)
		v.reported("p1 present")
		got = v.is("p1", persistentvolume.Present)
		if got.ReclaimPolicy != "Delete" || got.AttributesClass != "fast" ||
			!reflect.DeepEqual(got.Annotations, map[string]string{"git.liken.sh/pull-requested-at": "now"}) {
			t.Errorf("it is %+v", got)
		}

		for change, apply := range map[string]func(){
			"claim UID":      func() { pv.Spec.ClaimRef.UID = "c1" },
			"stage Secret":   func() { pv.Spec.CSI.NodeStageSecretRef = &corev1.SecretReference{Namespace: "ns", Name: "stage"} },
			"publish Secret": func() { pv.Spec.CSI.NodePublishSecretRef = &corev1.SecretReference{Namespace: "ns", Name: "publish"} },
		} {
			t.Log(change)
			apply()
			v.server.PutVolume(pv)
			v.reported("p1 present")
		}
		got = v.is("p1", persistentvolume.Present)
		if got.ClaimUID != "c1" || got.StageSecret != "ns/stage" || got.PublishSecret != "ns/publish" {
			t.Errorf("it is %+v", got)
		}

		v.server.MarkDeleting("p1") // a finalizer holds it: it exists
		v.reported("p1 present")
		if !v.is("p1", persistentvolume.Present).Deleting {
			t.Error("its deletion is not seen")
		}
		v.server.DeleteVolume("p1")
		v.reported("p1 absent")

		again := v.server.PutVolume(apiserver.Volume("p1", driver, "h1"))
		v.reported("p1 present")
		if got := v.is("p1", persistentvolume.Present); got.UID != again || again == uid {
			t.Errorf("made again it has the UID %q, want %q", got.UID, again)
		}
		if n := v.server.Count("list", "persistentvolumes"); n != 1 {
			t.Errorf("%d lists for one follow, want 1", n)
		}
	})
}

func TestAbsentFromTheStart(t *testing.T) {
	bubble(t, func(_ *testing.T, v *viewing) {
		v.Follow("p1")
		v.reported("p1 absent")
		v.server.PutVolume(apiserver.Volume("p10", driver, "h10"))
		v.reported()
		v.server.PutVolume(apiserver.Volume("p1", driver, "h1"))
		v.reported("p1 present")
	})
}

func TestUnfollow(t *testing.T) {
	bubble(t, func(t *testing.T, v *viewing) {
		v.server.PutVolume(apiserver.Volume("p1", driver, "h1"))
		v.Follow("p1")
		v.Follow("")
		v.reported("p1 present")
		v.Unfollow("p1")
		v.Unfollow("p1")
		v.is("p1", persistentvolume.Unknown)
		v.is("", persistentvolume.Unknown)
		if n := v.server.Watches(); n != 0 {
			t.Errorf("%d watches are left", n)
		}
		v.server.DeleteVolume("p1")
		v.reported()
		v.Follow("p1")
		v.reported("p1 absent")
	})
}

func TestRunEndsItsWatches(t *testing.T) {
	bubble(t, func(t *testing.T, v *viewing) {
		for _, name := range []string{"p1", "p2", "p3"} {
			v.Follow(name)
		}
		synctest.Wait()
		if n := v.server.Watches(); n != 3 {
			t.Errorf("%d watches, want 3", n)
		}
		v.stop()
		synctest.Wait()
		if n := v.server.Watches(); n != 0 {
			t.Errorf("%d watches are left", n)
		}
		v.Follow("p4")
		v.is("p4", persistentvolume.Unknown)
	})
}

// Nothing is asked while nothing is followed, and a quiet hour of one follow
// costs a handful of requests.
func TestRequestsFollowTheOwnVolumes(t *testing.T) {
	bubble(t, func(t *testing.T, v *viewing) {
		v.server.AddForeignVolumes(100)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(v.server.Requests()); n != 0 {
			t.Errorf("%d requests without a volume", n)
		}
		v.Follow("p1")
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(v.server.Requests()); n < 2 || n > 14 {
			t.Errorf("%d requests in an hour, want 2 for each 10 to 20 minutes", n)
		}
	})
}

// An API server that says nothing any more, on a connection that stays open.
func TestDeadConnectionIsFound(t *testing.T) {
	bubble(t, func(_ *testing.T, v *viewing) {
		v.server.PutVolume(apiserver.Volume("p1", driver, "h1"))
		v.Follow("p1")
		v.reported("p1 present")
		heal := v.server.Inject(apiserver.Fault{Verb: "watch", Do: apiserver.Hold(nil)})
		v.server.DropWatches()
		time.Sleep(time.Minute) // the watch begun meanwhile hears nothing
		heal()
		v.server.DeleteVolume("p1")
		v.reported()
		time.Sleep(22 * time.Minute)
		v.reported("p1 absent")
	})
}
