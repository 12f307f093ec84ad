package charts

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// mounts are the directories of the plugin's container: by where they are, the path of
// the node that is there, empty for one of the pod's own.
func (c chart) mounts(t *testing.T, values string) map[string]string {
	t.Helper()
	pod := only[*appsv1.DaemonSet](t, c.rendered(t, values)).Spec.Template.Spec
	host := make(map[string]string)
	for _, volume := range pod.Volumes {
		switch {
		case volume.HostPath != nil:
			host[volume.Name] = volume.HostPath.Path
		case volume.EmptyDir == nil:
			t.Fatalf("volume %q is neither a directory of the node nor the pod's own", volume.Name)
		}
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
	each(t, func(t *testing.T, c chart) {
		for name, test := range map[string]struct {
			values string
			want   map[string]string
		}{
			"default": {"", map[string]string{
				"/var/lib/kubelet": "/var/lib/kubelet Bidirectional",
				"/csi":             "/var/lib/kubelet/plugins/" + c.driver,
				c.store:            c.store,
			}},
			"kubelet elsewhere": {"kubeletDir: /var/snap/kubelet", map[string]string{
				"/var/snap/kubelet": "/var/snap/kubelet Bidirectional",
				"/csi":              "/var/snap/kubelet/plugins/" + c.driver,
				c.store:             c.store,
			}},
			"a disk that has to be mounted": {"store: /mnt/fast/volumes\nrequireMount: true", map[string]string{
				"/var/lib/kubelet": "/var/lib/kubelet Bidirectional",
				"/csi":             "/var/lib/kubelet/plugins/" + c.driver,
				"/mnt/fast":        "/mnt/fast HostToContainer",
			}},
		} {
			for _, dir := range c.scratch {
				test.want[dir] = ""
			}
			if got := c.mounts(t, test.values); !maps.Equal(got, test.want) {
				t.Errorf("%s: the mounts are %q, want %q", name, got, test.want)
			}
		}
	})
}

// The kubelet's directory is one value: nothing keeps the default when it is
// changed, the notes included.
func TestNoOtherKubeletPath(t *testing.T) {
	const fallback = "/var/lib/kubelet"
	each(t, func(t *testing.T, c chart) {
		if rendered := c.mustTemplate(t, ""); strings.Count(rendered, fallback) != 4 {
			t.Errorf("by default it is there %d times, want 4 (flag, mount and two hostPaths):\n%s", strings.Count(rendered, fallback), rendered)
		}
		for name, values := range map[string]string{
			"alone":        "kubeletDir: /var/snap/kubelet",
			"and all else": c.full(t),
		} {
			rendered := c.mustTemplate(t, values) + c.notes(t, values)
			if strings.Contains(rendered, fallback) {
				t.Errorf("%s: %s is still there:\n%s", name, fallback, rendered)
			}
			if n := strings.Count(rendered, "/var/snap/kubelet"); n != 4 {
				t.Errorf("%s: the value is there %d times, want 4:\n%s", name, n, rendered)
			}
		}
	})
}

func TestThePluginsPod(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		for name, values := range map[string]string{"default": "", "full": c.full(t)} {
			pod := only[*appsv1.DaemonSet](t, c.rendered(t, values)).Spec.Template.Spec
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
	})
}

// The service of each is made, and asked, by what the driver's documentation says.
func TestTheCSIDriver(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]storagev1.CSIDriverSpec{
		"pernode": {
			AttachRequired: new(false), PodInfoOnMount: new(true), StorageCapacity: new(false), SELinuxMount: new(false),
			VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent},
		},
		"gitvolume": {
			AttachRequired: new(false), PodInfoOnMount: new(true), StorageCapacity: new(false), SELinuxMount: new(false),
			RequiresRepublish:    new(true),
			VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral},
		},
	} {
		c := called(t, name)
		none := storagev1.NoneFSGroupPolicy
		want.FSGroupPolicy = &none
		got := only[*storagev1.CSIDriver](t, c.rendered(t, ""))
		if got.Name != c.driver || !reflect.DeepEqual(got.Spec, want) {
			t.Errorf("%s: it is %s, %+v", name, got.Name, got.Spec)
		}
	}
}

// Without a value, the plugin runs on each node of the cluster that can run it.
func TestByDefaultItRunsEverywhere(t *testing.T) {
	each(t, func(t *testing.T, c chart) {
		pod := only[*appsv1.DaemonSet](t, c.rendered(t, "")).Spec.Template.Spec
		if len(pod.Tolerations) != 1 || pod.Tolerations[0] != (corev1.Toleration{Operator: corev1.TolerationOpExists}) {
			t.Errorf("the tolerations are %v, want one of everything", pod.Tolerations)
		}
		if pod.PriorityClassName != "system-node-critical" {
			t.Errorf("the priority is %q", pod.PriorityClassName)
		}
	})
}

// A test pod that tolerates everything would be put on a node that is not ready,
// and fail there.
func TestWhereTheTestPodMayRun(t *testing.T) {
	controlPlane := corev1.Toleration{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	fast := corev1.Toleration{Key: "storage", Operator: corev1.TolerationOpExists}
	each(t, func(t *testing.T, c chart) {
		for values, want := range map[string][]corev1.Toleration{
			"":                {controlPlane},
			"tolerations: []": nil,
			"tolerations: [{key: storage, operator: Exists}]":                     {fast},
			"tolerations: [{key: storage, operator: Exists}, {operator: Exists}]": {fast, controlPlane},
		} {
			pod := only[*corev1.Pod](t, c.rendered(t, values+"\n"+c.withTest))
			if got := pod.Spec.Tolerations; !reflect.DeepEqual(got, want) {
				t.Errorf("with %q it tolerates %v, want %v", values, got, want)
			}
		}
	})
}
