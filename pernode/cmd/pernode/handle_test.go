package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// C10.
func TestBadHandles(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.Start()
	process.Await(t, "the store to know its cluster", func() bool {
		recorded, err := os.ReadFile(filepath.Join(n.Store, "cluster"))
		return err == nil && strings.TrimSpace(string(recorded)) == "cluster-1"
	})
	before := tree(t, filepath.Dir(n.Store))
	bad := []string{"", ".", "..", "../x", "a/../b", "/etc", "a/b", "%2e%2e", "a%00", "a\x00", "A", "a_b", "-a", "a-", ".a", "a.",
		"a..b", "a ", " a", "a\n", "a\tb", `a\b`, "\u00e9", "\uff41", strings.Repeat("a", 254)}
	var want []string
	for i, handle := range bad {
		err := n.Publish(kubelet.Volume{PV: "pv-x", Handle: handle, AccessMode: corev1.ReadWriteOnce}, rig.Pod(i))
		rig.WantCode(t, err, codes.InvalidArgument)
		n.WantMounts(n.Target("pv-x", i), 0)
		want = append(want, fmt.Sprintf("pod-%d PerNodeVolumeRefused 1", i))
	}
	for i, event := range n.awaitEvents("default", want...) {
		if quoted := strconv.Quote(bad[i]); len(bad[i]) < 254 && !strings.Contains(event.Message, quoted) {
			t.Errorf("%q does not quote the handle as %s", event.Message, quoted)
		}
		if strings.ContainsAny(event.Message, "\n\t\x00") {
			t.Errorf("a raw control byte is in %q", event.Message)
		}
	}
	for line := range strings.Lines(n.Plugin.Log.String()) {
		if !strings.HasPrefix(line, "time=") || strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\n\t\x00") {
			t.Errorf("a handle broke this line of the log: %q", line)
		}
	}
	if after := tree(t, filepath.Dir(n.Store)); !slices.Equal(after, before) {
		t.Errorf("bad handles left something: %q, want %q", after, before)
	}
}

// C10: a DNS-1123 subdomain limits the whole name alone.
func TestGoodHandles(t *testing.T) {
	t.Parallel()
	good := []string{"a", "0", "a.b", "a-b.c-d", strings.Repeat("a", 253), "a" + strings.Repeat(".a", 126)}
	n := newNode(t)
	for i, handle := range good {
		n.API.PutVolume(apiserver.Volume(fmt.Sprintf("pv-%d", i), driver.Name, handle))
	}
	n.Start()
	for i, handle := range good {
		v := kubelet.Volume{PV: fmt.Sprintf("pv-%d", i), Handle: handle, AccessMode: corev1.ReadWriteOncePod}
		rig.WantCode(t, n.Publish(v, rig.Pod(i)), codes.OK)
		n.WantMounts(n.Target(v.PV, i), 1)
	}
	slices.Sort(good)
	n.wantCopies(good...)
}

// C10: what a link in the store leads to is neither shown nor changed.
func TestLinkInPlaceOfACopy(t *testing.T) {
	t.Parallel()
	n := newNode(t, "evil", "file")
	n.Start()
	etc := t.TempDir()
	if err := os.Chmod(etc, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(etc, n.copyDir("evil")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, n.copyDir("file"), "")
	for i, handle := range []string{"evil", "file"} {
		rig.WantCode(t, n.Publish(volume(handle), rig.Pod(i)), codes.FailedPrecondition)
		n.WantMounts(n.Target(handle, i), 0)
	}
	wantMode(t, etc, os.ModeDir|0o755)
	n.awaitEvents("default", "pod-0 PerNodeMountFailed 1", "pod-1 PerNodeMountFailed 1")
}

func tree(t *testing.T, root string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
