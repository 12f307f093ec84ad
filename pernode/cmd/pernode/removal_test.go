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
	"liken.sh/pernode/internal/driver"
)

// sweepSoon makes a test see what sweeps do without waiting for them.
var sweepSoon = []string{"--sweep-every", "50ms"}

// leaveCopy publishes the volume, writes into it and unpublishes it.
func (n *node) leaveCopy(v kubelet.Volume) {
	n.t.Helper()
	wantCode(n.t, n.publish(v, pod(1)), codes.OK)
	writeFile(n.t, filepath.Join(n.target(v.PV, 1), "f"), "x")
	wantCode(n.t, n.unpublish(v, pod(1)), codes.OK)
}

func (n *node) wantKept(handle string) {
	n.t.Helper()
	if !exists(filepath.Join(n.copyDir(handle), "f")) {
		n.t.Fatalf("the copy of %s was removed", handle)
	}
}

// restartWatching starts the plugin again and waits until it watches the one
// PersistentVolume of its copies, which it does once it has read it. (A sweep
// while a copy is being made lets go of a watch, and takes it up again.)
func (n *node) restartWatching() {
	n.t.Helper()
	n.plugin.stop()
	n.api.ForgetRequests()
	n.start(sweepSoon...)
	await(n.t, "a watch", func() bool { return n.api.Count("watch", "persistentvolumes") > 0 })
}

// hasConfirmed is true when the plugin has asked for all PersistentVolumes.
func (n *node) hasConfirmed() bool {
	return slices.ContainsFunc(n.api.Requests(), func(r apiserver.Request) bool {
		return r.Verb == "list" && r.Resource == "persistentvolumes" && !strings.Contains(r.Query, "fieldSelector")
	})
}

// C06: a PersistentVolume that a finalizer keeps exists.
func TestVolumeBeingDeletedExists(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.start(sweepSoon...)
	n.leaveCopy(volume("h1"))
	n.api.MarkDeleting("h1")
	n.awaitSweeps(3)
	n.wantKept("h1")
	n.plugin.stop()
	n.start(sweepSoon...)
	n.awaitSweeps(3)
	n.wantKept("h1")
	n.api.DeleteVolume("h1")
	n.awaitRemoval("h1")
}

// C06, variant.
func TestHeldCopyGoesWithItsPod(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.start(sweepSoon...)
	n.mustPublish("h1", 1)
	writeFile(t, filepath.Join(n.target("h1", 1), "f"), "x")
	n.api.DeleteVolume("h1")
	n.awaitSweeps(3)
	n.wantKept("h1")
	n.wantMounts(n.target("h1", 1), 1)
	n.mustUnpublish("h1", 1)
	n.awaitRemoval("h1")
	await(t, "the trash to be emptied", func() bool { return names(t, filepath.Join(n.store, "trash")) == nil })
	n.plugin.awaitLog(`msg="deleted from the trash" volume=h1 bytes=`)
	await(t, "the removal to be counted", func() bool { return n.figure("per_node_copies_removed_total") == 1 })
}

// The deletion itself is heard, long before the next sweep on time.
func TestDeletionIsHeard(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1", "h2")
	n.start()
	n.leaveCopy(volume("h1"))
	n.leaveCopy(volume("h2"))
	n.api.DeleteVolume("h1")
	n.awaitRemoval("h1")
	n.wantKept("h2")
}

func TestDeletionWhileThePluginWasDown(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1", "h2")
	n.start()
	n.leaveCopy(volume("h1"))
	n.leaveCopy(volume("h2"))
	n.plugin.stop()
	n.api.DeleteVolume("h1")
	n.start()
	n.awaitRemoval("h1")
	n.wantKept("h2")
}

func TestTwoVolumesOfOneHandle(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.api.PutVolume(apiserver.Volume("p1", driver.Name, "h1"))
	n.api.PutVolume(apiserver.Volume("p2", driver.Name, "h1"))
	n.start(sweepSoon...)
	n.leaveCopy(kubelet.Volume{PV: "p1", Handle: "h1", AccessMode: corev1.ReadWriteOnce})
	n.api.DeleteVolume("p1")
	n.awaitSweeps(3)
	n.wantKept("h1")
	// A new process knows neither name, and has to ask for all volumes.
	n.plugin.stop()
	n.api.ForgetRequests()
	n.start(sweepSoon...)
	await(t, "a confirming read", n.hasConfirmed)
	n.awaitSweeps(2)
	n.wantKept("h1")
	n.api.DeleteVolume("p2")
	n.awaitRemoval("h1")
}

func TestOtherDriversVolumeDoesNotCount(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.api.PutVolume(apiserver.Volume("p1", driver.Name, "h1"))
	n.api.PutVolume(apiserver.Volume("h1", "other.example.invalid", "h1"))
	n.start(sweepSoon...)
	n.leaveCopy(kubelet.Volume{PV: "p1", Handle: "h1", AccessMode: corev1.ReadWriteOnce})
	n.awaitSweeps(3)
	n.wantKept("h1")
	n.api.DeleteVolume("p1")
	n.awaitRemoval("h1")
}

// A volume made again while the plugin confirms its deletion, under its name or
// under one the plugin only hears from the kubelet, is not removed.
func TestMadeAgain(t *testing.T) {
	for name, again := range map[string]func(n *node){
		"under its name": func(n *node) { n.api.PutVolume(apiserver.Volume("h1", driver.Name, "h1")) },
		"published meanwhile": func(n *node) {
			n.api.PutVolume(apiserver.Volume("p2", driver.Name, "h1"))
			wantCode(n.t, n.publish(kubelet.Volume{PV: "p2", Handle: "h1", AccessMode: corev1.ReadWriteOnce}, pod(2)), codes.OK)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "h1")
			n.start(sweepSoon...)
			n.leaveCopy(volume("h1"))
			n.restartWatching()
			asked, release := make(chan struct{}), make(chan struct{})
			n.api.Inject(apiserver.Fault{Verb: "list", Resource: "persistentvolumes", Times: 1, Do: answerLate(asked, release)})
			n.api.DeleteVolume("h1")
			<-asked
			again(n)
			close(release)
			n.awaitSweeps(2)
			n.wantKept("h1")
			if exists(n.target("p2", 2)) {
				wantCode(t, n.unpublish(kubelet.Volume{PV: "p2", Handle: "h1"}, pod(2)), codes.OK)
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
	n.start()
	n.leaveCopy(volume("h1"))
	n.api.DeleteVolume("h1")
	n.awaitRemoval("h1")
	n.api.PutVolume(apiserver.Volume("h1", driver.Name, "h1"))
	n.mustPublish("h1", 2)
	if left := names(t, n.target("h1", 2)); left != nil {
		t.Errorf("the new copy holds %q", left)
	}
	wantMode(t, n.copyDir("h1"), os.ModeDir|0o777)
}
