package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/pernode/internal/driver"
)

// node is a node of a cluster: a kubelet directory, a store and one plugin at a
// time.
type node struct{ *rig.Node }

// newNode makes a node of a cluster that has a PersistentVolume for each of
// handles, named like it.
func newNode(t testing.TB, handles ...string) *node {
	t.Helper()
	n := newStandaloneNode(t)
	n.JoinCluster()
	for _, h := range handles {
		n.API.PutVolume(apiserver.Volume(h, driver.Name, h))
	}
	return n
}

// newStandaloneNode makes a node whose plugin runs without an API server.
func newStandaloneNode(t testing.TB) *node {
	t.Helper()
	return &node{rig.New(t, rig.Config{Driver: driver.Name, Command: pluginCommand})}
}

func (n *node) copyDir(handle string) string { return filepath.Join(n.Store, "copies", handle) }

// volume is one whose PersistentVolume has the name of its handle.
func volume(handle string) kubelet.Volume {
	return kubelet.Volume{PV: handle, Handle: handle, AccessMode: corev1.ReadWriteOnce}
}

func readOnly(v kubelet.Volume) kubelet.Volume {
	v.ReadOnly = true
	return v
}

// mustPublish publishes the volume of handle for the i-th pod.
func (n *node) mustPublish(handle string, i int) {
	n.T.Helper()
	n.MustPublish(volume(handle), i)
}

func (n *node) mustUnpublish(handle string, i int) {
	n.T.Helper()
	n.MustUnpublish(volume(handle), i)
}

func (n *node) wantCopies(want ...string) {
	n.T.Helper()
	if got := names(n.T, filepath.Join(n.Store, "copies")); fmt.Sprint(got) != fmt.Sprint(want) {
		n.T.Errorf("the store has copies %q, want %q", got, want)
	}
}

func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func wantWords(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
}
