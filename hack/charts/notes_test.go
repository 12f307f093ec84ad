package charts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// notes are what a person reads after an installation.
func notes(t *testing.T, values string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := helm(t, "install", release, chart, "--namespace", namespace, "--dry-run=client", "--values", file)
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
		adopting  = "WARNING: adoptStore"
		noImage   = "WARNING: image.registry"
		ownDisk   = "set requireMount"
		firstTest = "helm -n per-node test pernode"
	)
	for name, test := range map[string]struct {
		values      string
		has, hasNot []string
	}{
		"default": {"", []string{firstTest, noImage, ownDisk, "/var/lib/liken/per-node/copies/<volume handle>"}, []string{adopting}},
		"full": {full(t), []string{firstTest, adopting, "/mnt/fast/per-node/copies/<volume handle>",
			"rollout status daemonset/local-volumes", "storageClassName: local"}, []string{noImage, ownDisk}},
	} {
		text := notes(t, test.values)
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
	_, rest, _ := strings.Cut(notes(t, "storageClass: {name: local}"), "a PersistentVolume and its claim:\n\n")
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
