package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/pernode/internal/driver"
)

// sweepSoon makes a test see what sweeps do without waiting for them.
var sweepSoon = []string{"--sweep-every", "50ms"}

// leaveCopy publishes the volume, writes into it and unpublishes it.
func (n *node) leaveCopy(v kubelet.Volume) {
	n.T.Helper()
	rig.WantCode(n.T, n.Publish(v, rig.Pod(1)), codes.OK)
	writeFile(n.T, filepath.Join(n.Target(v.PV, 1), "f"), "x")
	rig.WantCode(n.T, n.Unpublish(v, rig.Pod(1)), codes.OK)
}

func (n *node) wantKept(handle string) {
	n.T.Helper()
	if !exists(filepath.Join(n.copyDir(handle), "f")) {
		n.T.Fatalf("the copy of %s was removed", handle)
	}
}

// restartWatching starts the plugin again and waits until it watches the one
// PersistentVolume of its copies, which it does once it has read it. (A sweep
// while a copy is being made lets go of a watch, and takes it up again.)
func (n *node) restartWatching() {
	n.T.Helper()
	n.Plugin.Stop()
	n.API.ForgetRequests()
	n.Start(sweepSoon...)
	process.Await(n.T, "a watch", func() bool { return n.API.Count("watch", "persistentvolumes") > 0 })
}

// hasConfirmed is true when the plugin has asked for all PersistentVolumes.
func (n *node) hasConfirmed() bool {
	return slices.ContainsFunc(n.API.Requests(), func(r apiserver.Request) bool {
		return r.Verb == "list" && r.Resource == "persistentvolumes" && !strings.Contains(r.Query, "fieldSelector")
	})
}

// C06: a PersistentVolume that a finalizer keeps exists.
func TestVolumeBeingDeletedExists(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start(sweepSoon...)
	n.leaveCopy(volume("h1"))
	n.API.MarkDeleting("h1")
	n.awaitSweeps(3)
	n.wantKept("h1")
	n.Plugin.Stop()
	n.Start(sweepSoon...)
	n.awaitSweeps(3)
	n.wantKept("h1")
	n.API.DeleteVolume("h1")
	n.awaitRemoval("h1")
}

// C06, variant.
func TestHeldCopyGoesWithItsPod(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start(sweepSoon...)
	n.mustPublish("h1", 1)
	writeFile(t, filepath.Join(n.Target("h1", 1), "f"), "x")
	n.API.DeleteVolume("h1")
	n.awaitSweeps(3)
	n.wantKept("h1")
	n.WantMounts(n.Target("h1", 1), 1)
	n.mustUnpublish("h1", 1)
	n.awaitRemoval("h1")
	process.Await(t, "the trash to be emptied", func() bool { return names(t, filepath.Join(n.Store, "trash")) == nil })
	n.Plugin.AwaitLog(`msg="deleted from the trash" volume=h1 bytes=`)
	process.Await(t, "the removal to be counted", func() bool { return n.Figure("per_node_copies_removed_total") == 1 })
}

// The deletion itself is heard, long before the next sweep on time.
func TestDeletionIsHeard(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1", "h2")
	n.Start()
	n.leaveCopy(volume("h1"))
	n.leaveCopy(volume("h2"))
	n.API.DeleteVolume("h1")
	n.awaitRemoval("h1")
	n.wantKept("h2")
}

func TestDeletionWhileThePluginWasDown(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1", "h2")
	n.Start()
	n.leaveCopy(volume("h1"))
	n.leaveCopy(volume("h2"))
	n.Plugin.Stop()
	n.API.DeleteVolume("h1")
	n.Start()
	n.awaitRemoval("h1")
	n.wantKept("h2")
}

func TestTwoVolumesOfOneHandle(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.API.PutVolume(apiserver.Volume("p1", driver.Name, "h1"))
	n.API.PutVolume(apiserver.Volume("p2", driver.Name, "h1"))
	n.Start(sweepSoon...)
	n.leaveCopy(kubelet.Volume{PV: "p1", Handle: "h1", AccessMode: corev1.ReadWriteOnce})
	n.API.DeleteVolume("p1")
	n.awaitSweeps(3)
	n.wantKept("h1")
	// A new process knows neither name, and has to ask for all volumes.
	n.Plugin.Stop()
	n.API.ForgetRequests()
	n.Start(sweepSoon...)
	process.Await(t, "a confirming read", n.hasConfirmed)
	n.awaitSweeps(2)
	n.wantKept("h1")
	n.API.DeleteVolume("p2")
	n.awaitRemoval("h1")
}

func TestOtherDriversVolumeDoesNotCount(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.API.PutVolume(apiserver.Volume("p1", driver.Name, "h1"))
	n.API.PutVolume(apiserver.Volume("h1", "other.example.invalid", "h1"))
	n.Start(sweepSoon...)
	n.leaveCopy(kubelet.Volume{PV: "p1", Handle: "h1", AccessMode: corev1.ReadWriteOnce})
	n.awaitSweeps(3)
	n.wantKept("h1")
	n.API.DeleteVolume("p1")
	n.awaitRemoval("h1")
}

// A volume made again while the plugin confirms its deletion, under its name or
// under one the plugin only hears from the kubelet, is not removed.
func TestMadeAgain(t *testing.T) {
	for name, again := range map[string]func(n *node){
		"under its name": func(n *node) { n.API.PutVolume(apiserver.Volume("h1", driver.Name, "h1")) },
		"published meanwhile": func(n *node) {
			n.API.PutVolume(apiserver.Volume("p2", driver.Name, "h1"))
			rig.WantCode(n.T, n.Publish(kubelet.Volume{PV: "p2", Handle: "h1", AccessMode: corev1.ReadWriteOnce}, rig.Pod(2)), codes.OK)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "h1")
			n.Start(sweepSoon...)
			n.leaveCopy(volume("h1"))
			n.restartWatching()
			asked, release := make(chan struct{}), make(chan struct{})
			n.API.Inject(apiserver.Fault{Verb: "list", Resource: "persistentvolumes", Times: 1, Do: answerLate(asked, release)})
			n.API.DeleteVolume("h1")
			<-asked
			again(n)
			close(release)
			n.awaitSweeps(2)
			n.wantKept("h1")
			if exists(n.Target("p2", 2)) {
				rig.WantCode(t, n.Unpublish(kubelet.Volume{PV: "p2", Handle: "h1"}, rig.Pod(2)), codes.OK)
				n.awaitSweeps(2)
				n.wantKept("h1")
			}
		})
	}
}

// answerLate answers with what was right when it was asked.
func answerLate(asked chan<- struct{}, release <-chan struct{}) apiserver.Action {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		close(asked)
		<-release
		w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}
}

// A volume made again after its removal starts empty.
func TestVolumeMadeAgainIsEmpty(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	n.leaveCopy(volume("h1"))
	n.API.DeleteVolume("h1")
	n.awaitRemoval("h1")
	n.API.PutVolume(apiserver.Volume("h1", driver.Name, "h1"))
	n.mustPublish("h1", 2)
	if left := names(t, n.Target("h1", 2)); left != nil {
		t.Errorf("the new copy holds %q", left)
	}
	wantMode(t, n.copyDir("h1"), os.ModeDir|0o777)
}
