package nodetest

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/gitvolume/internal/driver"
	"liken.sh/gitvolume/internal/gittest"
)

// names has the PersistentVolume of a volume name these Secrets, and the class notes.
func (n *node) names(handle, stage, publish string) {
	pv := apiserver.Volume(handle, driver.Name, handle)
	class := "notes"
	pv.Spec.VolumeAttributesClassName = &class
	pv.Spec.CSI.NodeStageSecretRef, pv.Spec.CSI.NodePublishSecretRef = secretRef(stage), secretRef(publish)
	n.API.PutVolume(pv)
}

func secretRef(name string) *corev1.SecretReference {
	if name == "" {
		return nil
	}
	return &corev1.SecretReference{Namespace: "default", Name: name}
}

// wanting is a server of the node's repository that wants the token.
func (n *node) wanting(token *atomic.Value) (url string) {
	server := gittest.StartHTTP(n.T, filepath.Dir(n.remote.Dir), gittest.HTTPOptions{Around: func(git http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, given, _ := r.BasicAuth(); given != token.Load() {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			git.ServeHTTP(w, r)
		})
	}})
	return server.URL("/" + filepath.Base(n.remote.Dir))
}

// republish is what the kubelet does each minute, with what is in the Secret by now.
func (n *node) republish(v kubelet.Volume, i int, secret map[string]string) error {
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	v.PublishSecret = secret
	return n.Kubelet.Republish(ctx, v, rig.Pod(i))
}

// The Secrets of stage and publish of a volume that is written have to be one. What rotates
// counts at once, what is malformed changes nothing, and without the publish's a restarted
// plugin has none, keeps what is written, and keeps no pod from going.
func TestWrittenWithSecrets(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	n.remote.Put("main", map[string]string{"a": "1"})
	n.API.PutClass("notes", driver.Name, map[string]string{"push.quiesce": "5s"})
	var wanted atomic.Value
	wanted.Store("old")
	secret := func(token string) map[string]string { return map[string]string{"token": token} }
	v := kubelet.Volume{
		PV: "v", Handle: "v", AccessMode: corev1.ReadWriteOncePod, Attributes: map[string]string{"url": n.wanting(&wanted)},
		StageSecret: secret("old"), PublishSecret: secret("new"),
	}
	const abnormal = `git_csi_volume_abnormal{claim="v",namespace="default",volume="v"} `
	n.Start("--allow-insecure")
	n.names("v", "one", "another")
	err := n.Publish(v, rig.Pod(1))
	rig.WantCode(t, err, codes.FailedPrecondition)
	if !strings.Contains(err.Error(), "name one Secret in both") {
		t.Errorf("the answer is %v", err)
	}
	n.told("Pod", "GitVolumeRefused", "name one Secret in both")

	// It is one Secret, which rotated between the two calls.
	n.names("v", "one", "one")
	wanted.Store("new")
	process.Await(t, "the volume", func() bool { return n.republish(v, 1, secret("new")) == nil })
	target := n.Kubelet.Target(rig.Pod(1).UID, "v")
	write(t, target, "b", "1")
	process.Await(t, "the first write to arrive", func() bool { return n.has("b", "1") })

	rig.WantCode(t, n.republish(v, 1, secret("")), codes.OK)
	n.AwaitAnswer("/metrics", 200, abnormal+"1")
	write(t, target, "b", "2")
	process.Await(t, "a write to arrive with the last good Secret", func() bool { return n.has("b", "2") })

	wanted.Store("newer")
	write(t, target, "b", "3")
	n.told("PersistentVolumeClaim", "GitVolumePushFailed", "")
	rig.WantCode(t, n.republish(v, 1, secret("newer")), codes.OK)
	process.Await(t, "what waited for the Secret to arrive", func() bool { return n.has("b", "3") })
	n.AwaitAnswer("/metrics", 200, abnormal+"0")

	n.names("v", "one", "")
	n.told("Pod", "GitVolumeNoPublishSecret", "nodePublishSecretRef")
	n.told("PersistentVolumeClaim", "GitVolumeNoPublishSecret", "nodePublishSecretRef")
	n.Plugin.Kill()
	n.Start("--allow-insecure")
	rig.WantCode(t, n.republish(v, 1, nil), codes.OK)
	n.AwaitAnswer("/metrics", 200, abnormal+"1")
	write(t, target, "b", "4")
	n.MustUnpublish(v, 1)
	if n.has("b", "4") {
		t.Error("it was pushed without a credential")
	}
	n.names("v", "one", "one")
	v.StageSecret, v.PublishSecret = secret("newer"), secret("newer")
	shows(t, n.MustPublish(v, 2), "b", "4")
	process.Await(t, "what was kept to arrive", func() bool { return n.has("b", "4") })
	n.MustUnpublish(v, 2)
}
