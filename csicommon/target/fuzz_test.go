package target

import (
	"path/filepath"
	"strings"
	"testing"
)

// A path is the kubelet's only if it is one of six parts below the pods directory, whatever
// a request says.
func FuzzMatchesBelow(f *testing.F) {
	f.Add("/k/pods/u/volumes/kubernetes.io~csi/pv/mount", "/k/pods")
	f.Add("/k/pods/../../etc/volumes/kubernetes.io~csi/pv/mount", "/k/pods")
	f.Add("/k/pods/[/volumes/kubernetes.io~csi/\\/mount", "/k/pods")
	f.Add("/k/pods/u/volumes/kubernetes.io~csi/../mount", "/")
	f.Fuzz(func(t *testing.T, path, pods string) {
		if !filepath.IsAbs(path) || !filepath.IsAbs(pods) || strings.Contains(path+pods, "\x00") {
			return
		}
		path, pods = filepath.Clean(path), filepath.Clean(pods)
		below, isBelow := strings.CutPrefix(path, strings.TrimSuffix(pods, "/")+"/")
		parts := strings.Split(below, "/")
		want := isBelow && len(parts) == 5 && parts[1] == "volumes" && parts[2] == "kubernetes.io~csi" && parts[4] == "mount"
		if got := matchesBelow(path, pods); got != want {
			t.Errorf("%q below %q: %t, want %t", path, pods, got, want)
		}
	})
}
