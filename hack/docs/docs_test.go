package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"
)

// root is the repository's, seen from this package.
const root = "../.."

// pages returns the text of every page of the repository, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == ".git" {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("only %d pages below %s", len(found), root)
	}
	return found
}

var (
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingPattern = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fencePattern   = regexp.MustCompile("(?ms)^```.*?^```$")
	notInAnchor    = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// anchors are those that a forge makes of a page's headings.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	for _, heading := range headingPattern.FindAllStringSubmatch(fencePattern.ReplaceAllString(text, ""), -1) {
		found[strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-")] = true
	}
	return found
}

func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	checked := 0
	for path, text := range all {
		for _, link := range linkPattern.FindAllStringSubmatch(fencePattern.ReplaceAllString(text, ""), -1) {
			file, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			checked++
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link %q: %v", path, link[1], err)
			} else if anchor != "" && !anchors(all[target])[anchor] {
				t.Errorf("%s: link %q: %s has no such heading", path, link[1], target)
			}
		}
	}
	if checked == 0 {
		t.Error("no link was found")
	}
}

// objectOf is an empty object of a manifest's kind, nil for one that no page has.
func objectOf(apiVersion, kind string) any {
	switch apiVersion + " " + kind {
	case "v1 Namespace":
		return &corev1.Namespace{}
	case "v1 PersistentVolume":
		return &corev1.PersistentVolume{}
	case "v1 PersistentVolumeClaim":
		return &corev1.PersistentVolumeClaim{}
	case "v1 Pod":
		return &corev1.Pod{}
	case "v1 ServiceAccount":
		return &corev1.ServiceAccount{}
	case "apps/v1 DaemonSet":
		return &appsv1.DaemonSet{}
	case "apps/v1 StatefulSet":
		return &appsv1.StatefulSet{}
	case "rbac.authorization.k8s.io/v1 ClusterRole":
		return &rbacv1.ClusterRole{}
	case "rbac.authorization.k8s.io/v1 ClusterRoleBinding":
		return &rbacv1.ClusterRoleBinding{}
	case "storage.k8s.io/v1 CSIDriver":
		return &storagev1.CSIDriver{}
	case "storage.k8s.io/v1 StorageClass":
		return &storagev1.StorageClass{}
	}
	return nil
}

var manifestPattern = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

func TestManifestsAreValid(t *testing.T) {
	checked := 0
	for path, text := range pages(t) {
		for _, block := range manifestPattern.FindAllStringSubmatch(text, -1) {
			for _, manifest := range strings.Split(block[1], "\n---\n") {
				var head struct {
					APIVersion string `json:"apiVersion"`
					Kind       string `json:"kind"`
				}
				if err := yaml.Unmarshal([]byte(manifest), &head); err != nil {
					t.Errorf("%s: %v\n%s", path, err, manifest)
					continue
				}
				object := objectOf(head.APIVersion, head.Kind)
				if object == nil {
					t.Errorf("%s: %s %s is no kind that is known here", path, head.APIVersion, head.Kind)
					continue
				}
				// Strict: a field that Kubernetes does not know is a typing error.
				if err := yaml.UnmarshalStrict([]byte(manifest), object); err != nil {
					t.Errorf("%s: %s: %v", path, head.Kind, err)
				}
				checked++
			}
		}
	}
	if checked == 0 {
		t.Error("no manifest was found")
	}
}
