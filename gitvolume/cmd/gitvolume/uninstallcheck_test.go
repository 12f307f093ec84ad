package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/apiserver"
)

func TestUninstallCheck(t *testing.T) {
	t.Parallel()
	server := apiserver.New()
	put := func(name, driver string, policy corev1.PersistentVolumeReclaimPolicy, isBound bool) {
		pv := apiserver.Volume(name, driver, name)
		pv.Spec.PersistentVolumeReclaimPolicy = policy
		pv.Spec.ClaimRef.Namespace = "shop"
		if isBound {
			pv.Spec.ClaimRef.UID = "1"
		}
		server.PutVolume(pv)
	}
	server.AddForeignVolumes(300)
	put("kept", "git.liken.sh", corev1.PersistentVolumeReclaimRetain, true)
	put("free", "git.liken.sh", corev1.PersistentVolumeReclaimDelete, false)
	put("other", "other.example", corev1.PersistentVolumeReclaimDelete, true)
	h, kubeconfig := newHome(t), server.Kubeconfig(t)
	check := func() (int, string) {
		p := h.start("uninstall-check", "--kubeconfig", kubeconfig)
		return p.Wait(), p.out.String() + p.Log.String()
	}
	if code, said := check(); code != 0 || !strings.Contains(said, "no volume") {
		t.Errorf("%d: %s", code, said)
	}
	put("notes-2", "git.liken.sh", corev1.PersistentVolumeReclaimDelete, true)
	put("notes-1", "git.liken.sh", corev1.PersistentVolumeReclaimDelete, true)
	const want = "  notes-1, of claim shop/notes-1\n  notes-2, of claim shop/notes-2\n"
	if code, said := check(); code != exitFailed || !strings.Contains(said, want) || !strings.Contains(said, "2 volumes") {
		t.Errorf("%d: %s", code, said)
	}
	for _, request := range server.Requests() {
		if request.Verb != "list" || request.Resource != "persistentvolumes" {
			t.Errorf("it asks %+v, for which it has no grant", request)
		}
	}
	server.Inject(apiserver.Fault{Do: apiserver.Refuse(403)})
	if code, said := check(); code != exitFailed || strings.Count(said, "\n") != 1 {
		t.Errorf("%d: %s", code, said)
	}
	h.start("uninstall-check", "all").refused(`"all"`, "takes flags only")
	if help := h.start("uninstall-check", "--help"); help.Wait() != 0 || !strings.Contains(help.out.String(), "--kubeconfig") {
		t.Errorf("the help is %q", help.out.String())
	}
}
