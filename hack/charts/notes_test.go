package charts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// notes are what a person reads after an installation.
func (c chart) notes(t *testing.T, values string) string {
	t.Helper()
	said, err := helm(t, "install", c.name, c.dir(), "--namespace", c.namespace, "--dry-run=client", "--values", valuesFile(t, values))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(said, "\nNOTES:\n")
	if !found {
		t.Fatalf("there are no notes in\n%s", said)
	}
	return text
}

func TestNotes(t *testing.T) {
	t.Parallel()
	const (
		adopting = "WARNING: adoptStore"
		noImage  = "WARNING: image.registry"
		ownDisk  = "set requireMount"
	)
	for name, test := range map[string]struct {
		chart, values string
		has, hasNot   []string
	}{
		"per-node": {"pernode", "", []string{"helm -n per-node test pernode", noImage, ownDisk, "/var/lib/liken/per-node/copies/<volume handle>"}, []string{adopting}},
		"per-node, full": {"pernode", called(t, "pernode").full(t), []string{"helm -n per-node test pernode", adopting, "/mnt/fast/per-node/copies/<volume handle>",
			"rollout status daemonset/local-volumes", "storageClassName: local"}, []string{noImage, ownDisk}},
		"git": {"gitvolume", "", []string{"rollout status daemonset/gitvolume-node", "--set test.url=", noImage, ownDisk, "set allowURLs", "/var/lib/liken/git"},
			[]string{"helm -n gitvolume test", adopting, "WARNING: allow", "WARNING: controller.replicas"}},
		"git, no controller": {"gitvolume", "controller: {replicas: 0}", []string{"WARNING: controller.replicas is 0"}, []string{"rollout status deployment"}},
		"git, a route of a gateway": {"gitvolume", "webhook: {enabled: true, namespaces: [shop], httpRoute: {enabled: true, gateways: [{name: public}]}}",
			[]string{"/webhook/<namespace>/<secret>", "hosts of its HTTPRoute: all those of the Gateway"}, nil},
		"git, a route of hosts": {"gitvolume", "webhook: {enabled: true, namespaces: [shop], httpRoute: {enabled: true, gateways: [{name: public}], hostnames: [a.example.com, b.example.com]}}",
			[]string{"hosts of its HTTPRoute: a.example.com, b.example.com"}, nil},
		"git, full": {"gitvolume", called(t, "gitvolume").full(t), []string{"helm -n gitvolume test gitvolume", adopting, "WARNING: allowInsecure", "WARNING: allowLocalURLs",
			"allowURLs: git.example.com/shop/*, *.example.org", "/mnt/fast/git", "rollout status daemonset/local-git-node"}, []string{noImage, ownDisk, "set allowURLs"}},
	} {
		text := called(t, test.chart).notes(t, test.values)
		for _, words := range test.has {
			if !strings.Contains(text, words) {
				t.Errorf("%s: the notes do not say %q:\n%s", name, words, text)
			}
		}
		for _, words := range test.hasNot {
			if strings.Contains(text, words) {
				t.Errorf("%s: the notes say %q:\n%s", name, words, text)
			}
		}
	}
}

// The volume in the notes is copied by a person, and has to be one of this class.
func TestTheFirstVolumeOfTheNotes(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(called(t, "pernode").notes(t, "storageClass: {name: local}"), "a PersistentVolume and its claim:\n\n")
	manifests, _, _ := strings.Cut(rest, "\n\n")
	first, second, found := strings.Cut(manifests, "\n  ---\n")
	if !found {
		t.Fatalf("there are no two manifests in %q", rest)
	}
	var volume corev1.PersistentVolume
	if err := yaml.UnmarshalStrict([]byte(first), &volume); err != nil {
		t.Fatal(err)
	}
	var claim corev1.PersistentVolumeClaim
	if err := yaml.UnmarshalStrict([]byte(second), &claim); err != nil {
		t.Fatal(err)
	}
	if volume.Spec.CSI.Driver != "per-node.liken.sh" || volume.Spec.StorageClassName != "local" || *claim.Spec.StorageClassName != "local" {
		t.Errorf("the volume is %+v, the claim %+v", volume.Spec, claim.Spec)
	}
	if reference := volume.Spec.ClaimRef; reference.Namespace != claim.Namespace || reference.Name != claim.Name {
		t.Errorf("the volume is for %s/%s, the claim is %s/%s", reference.Namespace, reference.Name, claim.Namespace, claim.Name)
	}
}

func TestTheFirstPodOfTheNotes(t *testing.T) {
	t.Parallel()
	c := called(t, "gitvolume")
	_, rest, _ := strings.Cut(c.notes(t, ""), "read-only:\n\n")
	manifest, _, _ := strings.Cut(rest, "\n\n")
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(manifest), &pod); err != nil {
		t.Fatalf("%v in\n%s", err, manifest)
	}
	if len(pod.Spec.Volumes) != 1 || pod.Spec.Volumes[0].CSI == nil {
		t.Fatalf("its volumes are %+v", pod.Spec.Volumes)
	}
	if volume := pod.Spec.Volumes[0].CSI; volume.Driver != c.driver || volume.ReadOnly == nil || !*volume.ReadOnly || volume.VolumeAttributes["url"] == "" {
		t.Errorf("its volume is %+v", volume)
	}
}
