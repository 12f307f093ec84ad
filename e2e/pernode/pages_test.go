//go:build e2e

package pernode

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liken.sh/e2e/cluster"
)

// pause is an image that every node has and that runs until it is ended. The
// guides' images are made up.
const pause = "liken.sh/pause:1"

// owns deletes the objects of a page's blocks when the test ends, first all and
// then waiting for all: what comes first can be in use by what comes later.
func owns(t *testing.T, blocks ...string) {
	t.Helper()
	manifests := strings.Join(blocks, "---\n")
	t.Cleanup(func() {
		if _, err := kube.Try(manifests, "kubectl", "delete", "--filename", "-", "--ignore-not-found", "--wait=false"); err != nil {
			t.Error(err)
		}
		if _, err := kube.Try(manifests, "kubectl", "wait", "--for=delete", "--timeout=3m", "--filename", "-"); err != nil {
			t.Error(err)
		}
	})
}

// TestFirstVolume is the page's, with the visits it speaks of.
func TestFirstVolume(t *testing.T) {
	t.Parallel()
	kube.Undisturbed(t)
	t.Cleanup(func() { copiesGo(t, "scratch") })
	manifests := perNode.Block(t, "install.md", "The first volume", "yaml", 0)
	owns(t, manifests)
	kube.Apply(t, manifests)
	perNode.ReportFailure(t, "default")
	writer := perNode.InSpace(t, "default")
	writer.Runs("writer", cluster.Soon)
	for visits := 1; ; visits++ {
		cluster.Eventually(t, cluster.Soon, fmt.Sprintf("%d visits are in the file", visits), func() error {
			if got := strings.Count(kube.MustShell(t, "kubectl exec writer -- cat /data/visits"), "\n"); got != visits {
				return fmt.Errorf("%d lines", got)
			}
			return nil
		})
		node := writer.Get("writer").Spec.NodeName
		kube.MustOnNode(t, node, "cat", store+"/copies/scratch/visits")
		if visits == 2 {
			return
		}
		writer.Delete("pod", "writer", "--grace-period=1")
		again := manifests[strings.LastIndex(manifests, "---\n"):]
		kube.Apply(t, strings.Replace(again, "spec:\n", "spec:\n  nodeName: "+node+"\n", 1))
		writer.Runs("writer", cluster.Soon)
	}
}

// TestReleasedVolumeTakesAClaimAgain is what troubleshooting says of a volume whose
// claim was deleted.
func TestReleasedVolumeTakesAClaimAgain(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	volume := s.volume()
	node := kube.Nodes[0]
	s.pod("first", node, volume)
	s.Runs("first", cluster.Soon)
	s.Exec("first", "echo kept > /data/file")
	claim, err := kube.Client.CoreV1().PersistentVolumeClaims(s.Name).Get(t.Context(), volume, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Delete("pod", "first")
	s.Delete("persistentvolumeclaim", volume)
	phase := func(want corev1.PersistentVolumePhase) func() error {
		return func() error {
			got, err := kube.Client.CoreV1().PersistentVolumes().Get(t.Context(), volume, metav1.GetOptions{})
			if err == nil && got.Status.Phase != want {
				err = fmt.Errorf("it is %s", got.Status.Phase)
			}
			return err
		}
	}
	cluster.Eventually(t, cluster.Soon, "the volume is released", phase(corev1.VolumeReleased))
	copyStays(t, node, volume)
	patch := perNode.Block(t, "troubleshooting.md", "The pod is Pending, the claim unbound", "sh", 0)
	kube.MustShell(t, strings.Replace(patch, "NAME", volume, 1))
	claim = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: volume}, Spec: claim.Spec}
	claim.Spec.VolumeName = ""
	if _, err := kube.Client.CoreV1().PersistentVolumeClaims(s.Name).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cluster.Eventually(t, cluster.Soon, "the volume is bound", phase(corev1.VolumeBound))
	s.pod("second", node, volume)
	s.Runs("second", cluster.Soon)
	s.Reads("second", "/data/file", "kept")
}

// TestCache is the guide, with emptying the cache.
func TestCache(t *testing.T) {
	t.Parallel()
	kube.Undisturbed(t)
	kube.NameImage(t, pause, "registry.example.com/mirror:1")
	t.Cleanup(func() { copiesGo(t, "mirror-cache", "mirror-cache-2") })
	const guide = "guides/cache.md"
	manifests, second := perNode.Block(t, guide, "A cache", "yaml", 0), perNode.Block(t, guide, "Emptying it", "yaml", 0)
	owns(t, manifests, second)
	kube.Apply(t, manifests)
	perNode.ReportFailure(t, "mirror")
	rollout := "kubectl -n mirror rollout status daemonset mirror --timeout=5m"
	kube.MustShell(t, rollout)
	for _, node := range kube.Nodes {
		kube.MustOnNode(t, node, "touch", store+"/copies/mirror-cache/layer")
		optionsAre(t, node, "/copies/mirror-cache ", "noexec", "noatime", "nosuid", "nodev")
	}

	kube.Apply(t, second)
	changed := strings.Replace(manifests, "claimName: cache", "claimName: cache-2", 1)
	kube.Apply(t, changed[strings.LastIndex(changed, "---\n"):])
	kube.MustShell(t, perNode.Block(t, guide, "Emptying it", "sh", 0))
	copiesGo(t, "mirror-cache")
	for _, node := range kube.Nodes {
		if left := kube.MustOnNode(t, node, "ls", "-A", store+"/copies/mirror-cache-2"); left != "" {
			t.Errorf("the new cache of %s has %q", node, left)
		}
	}
}

// TestReplicatedStore is the guide. It wants three nodes: the third replica waits
// for one.
func TestReplicatedStore(t *testing.T) {
	t.Parallel()
	kube.Undisturbed(t)
	kube.NameImage(t, pause, "registry.example.com/db:1")
	t.Cleanup(func() { copiesGo(t, "data-db-0", "data-db-1", "data-db-2", "db-everywhere") })
	const guide = "guides/replicated-store.md"
	replicated := perNode.Block(t, guide, "A store that replicates itself", "yaml", 0)
	everywhere := perNode.Block(t, guide, "As a DaemonSet", "yaml", 0)
	// The namespace among them takes the claims that the StatefulSet makes with it.
	owns(t, replicated, everywhere)
	kube.Apply(t, replicated)
	perNode.ReportFailure(t, "shop")
	replicas := int32(min(3, len(kube.Nodes)))
	cluster.Eventually(t, cluster.Patient, fmt.Sprintf("%d replicas run", replicas), func() error {
		set, err := kube.Client.AppsV1().StatefulSets("shop").Get(t.Context(), "db", metav1.GetOptions{})
		if err == nil && set.Status.ReadyReplicas != replicas {
			err = fmt.Errorf("%d", set.Status.ReadyReplicas)
		}
		return err
	})
	where := map[string]bool{}
	for i := range replicas {
		pod, err := kube.Client.CoreV1().Pods("shop").Get(t.Context(), fmt.Sprintf("db-%d", i), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		where[pod.Spec.NodeName] = true
		copyStays(t, pod.Spec.NodeName, fmt.Sprintf("data-db-%d", i))
	}
	if len(where) != int(replicas) {
		t.Errorf("the replicas are on the nodes %v", where)
	}

	kube.Apply(t, everywhere)
	kube.MustShell(t, "kubectl -n shop rollout status daemonset db-everywhere --timeout=5m")
	for _, node := range kube.Nodes {
		copyStays(t, node, "db-everywhere")
	}
}

// optionsAre checks the mount of what lies in the store, as the node's processes
// see it.
func optionsAre(t *testing.T, node, root string, want ...string) {
	t.Helper()
	cluster.Eventually(t, 30*time.Second, node+" has the mount with its options", func() error {
		var errs []error
		for line := range strings.Lines(kube.MustOnNode(t, node, "cat", "/proc/self/mountinfo")) {
			fields := strings.Fields(line)
			if !strings.HasSuffix(fields[3]+" ", root) || !strings.Contains(fields[4], "/kubernetes.io~csi/") {
				continue
			}
			for _, option := range want {
				if !strings.Contains(","+fields[5]+",", ","+option+",") {
					errs = append(errs, fmt.Errorf("%s is not among %s", option, fields[5]))
				}
			}
			return errors.Join(errs...)
		}
		return errors.New("there is no such mount")
	})
}
