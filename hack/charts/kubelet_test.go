package charts

import (
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// hostPaths are the paths of the node that the plugin's pod mounts, by where in
// the container.
func hostPaths(t *testing.T, values string) map[string]string {
	t.Helper()
	pod := only[*appsv1.DaemonSet](t, objects(t, values)).Spec.Template.Spec
	host := make(map[string]string)
	for _, volume := range pod.Volumes {
		if volume.HostPath == nil {
			t.Fatalf("volume %q is no directory of the node", volume.Name)
		}
		host[volume.Name] = volume.HostPath.Path
	}
	paths := make(map[string]string)
	for _, mount := range pod.Containers[0].VolumeMounts {
		paths[mount.MountPath] = host[mount.Name]
		if mount.MountPropagation != nil {
			paths[mount.MountPath] += " " + string(*mount.MountPropagation)
		}
	}
	if len(paths) != len(pod.Volumes) {
		t.Errorf("%d volumes are mounted at %d places", len(pod.Volumes), len(paths))
	}
	return paths
}

func TestMounts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values string
		want   map[string]string
	}{
		"default": {"", map[string]string{
			"/var/lib/kubelet":        "/var/lib/kubelet Bidirectional",
			"/csi":                    "/var/lib/kubelet/plugins/per-node.liken.sh",
			"/var/lib/liken/per-node": "/var/lib/liken/per-node",
		}},
		"kubelet elsewhere": {"kubeletDir: /var/snap/kubelet", map[string]string{
			"/var/snap/kubelet":       "/var/snap/kubelet Bidirectional",
			"/csi":                    "/var/snap/kubelet/plugins/per-node.liken.sh",
			"/var/lib/liken/per-node": "/var/lib/liken/per-node",
		}},
		"a disk that has to be mounted": {"store: /mnt/fast/per-node\nrequireMount: true", map[string]string{
			"/var/lib/kubelet": "/var/lib/kubelet Bidirectional",
			"/csi":             "/var/lib/kubelet/plugins/per-node.liken.sh",
			"/mnt/fast":        "/mnt/fast HostToContainer",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := hostPaths(t, test.values)
			for at, want := range test.want {
				if got[at] != want {
					t.Errorf("at %s is %q, want %q", at, got[at], want)
				}
			}
			if len(got) != len(test.want) {
				t.Errorf("the mounts are %v, want %v", got, test.want)
			}
		})
	}
}

// The kubelet's directory is one value: nothing keeps the default when it is
// changed, the notes included.
func TestNoOtherKubeletPath(t *testing.T) {
	t.Parallel()
	const fallback = "/var/lib/kubelet"
	if rendered := mustTemplate(t, ""); strings.Count(rendered, fallback) != 4 {
		t.Errorf("by default it is there %d times, want 4 (flag, mount and two hostPaths):\n%s", strings.Count(rendered, fallback), rendered)
	}
	for name, values := range map[string]string{
		"alone":        "kubeletDir: /var/snap/kubelet",
		"and all else": full(t),
	} {
		rendered := mustTemplate(t, values) + notes(t, values)
		if strings.Contains(rendered, fallback) {
			t.Errorf("%s: %s is still there:\n%s", name, fallback, rendered)
		}
		if n := strings.Count(rendered, "/var/snap/kubelet"); n != 4 {
			t.Errorf("%s: the value is there %d times, want 4:\n%s", name, n, rendered)
		}
	}
}

func TestThePluginsPod(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{"default": "", "full": full(t)} {
		pod := only[*appsv1.DaemonSet](t, objects(t, values)).Spec.Template.Spec
		if len(pod.Containers) != 1 || len(pod.InitContainers) != 0 {
			t.Fatalf("%s: %d containers and %d init containers, want one", name, len(pod.Containers), len(pod.InitContainers))
		}
		if pod.HostNetwork || pod.HostPID || pod.HostIPC {
			t.Errorf("%s: it shares a namespace with the node", name)
		}
		security := pod.Containers[0].SecurityContext
		if security.Privileged == nil || !*security.Privileged {
			t.Errorf("%s: it is not privileged, so no mount reaches the kubelet", name)
		}
		if security.ReadOnlyRootFilesystem == nil || !*security.ReadOnlyRootFilesystem {
			t.Errorf("%s: its root file system can be written", name)
		}
		for _, port := range pod.Containers[0].Ports {
			if port.HostPort != 0 {
				t.Errorf("%s: port %d of the node is taken", name, port.HostPort)
			}
		}
	}
}

// Without a value, the plugin runs on each node of the cluster that can run it.
func TestByDefaultItRunsEverywhere(t *testing.T) {
	t.Parallel()
	pod := only[*appsv1.DaemonSet](t, objects(t, "")).Spec.Template.Spec
	if len(pod.Tolerations) != 1 || pod.Tolerations[0] != (corev1.Toleration{Operator: corev1.TolerationOpExists}) {
		t.Errorf("the tolerations are %v, want one of everything", pod.Tolerations)
	}
	if pod.PriorityClassName != "system-node-critical" {
		t.Errorf("the priority is %q", pod.PriorityClassName)
	}
}

// A test pod that tolerates everything would be put on a node that is not ready,
// and fail there.
func TestWhereTheTestPodMayRun(t *testing.T) {
	t.Parallel()
	controlPlane := corev1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	fast := corev1.Toleration{Key: "storage", Operator: corev1.TolerationOpExists}
	for values, want := range map[string][]corev1.Toleration{
		"":                {controlPlane},
		"tolerations: []": nil,
		"tolerations: [{key: storage, operator: Exists}]":                     {fast},
		"tolerations: [{key: storage, operator: Exists}, {operator: Exists}]": {fast, controlPlane},
	} {
		if got := only[*corev1.Pod](t, objects(t, values)).Spec.Tolerations; !reflect.DeepEqual(got, want) {
			t.Errorf("with %q it tolerates %v, want %v", values, got, want)
		}
	}
}
