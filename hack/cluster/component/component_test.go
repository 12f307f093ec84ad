package component

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"liken.sh/hack/cluster/layout"
)

func plan(t *testing.T) layout.Cluster {
	t.Helper()
	c, err := layout.New("/state", "/cache", "10.213.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The kubelet of one node kills pods of the other where they share a control group
// or an address range.
func TestNodesShareNothing(t *testing.T) {
	c := plan(t)
	one := Configuration(c, layout.Node1, "overlayfs")
	two := Configuration(c, layout.Node2, "overlayfs")
	for _, file := range []string{PKIDir + "/kubelet.yaml", "/etc/cni/net.d/10-liken-cluster.conf", "/etc/machine-id", "/etc/hostname"} {
		if len(one[file]) == 0 {
			t.Errorf("%s is missing", file)
		}
		if string(one[file]) == string(two[file]) {
			t.Errorf("both nodes have the same %s", file)
		}
	}
}

func TestFilesParse(t *testing.T) {
	files := Configuration(plan(t), layout.Node1, "overlayfs")
	var kubelet struct {
		CgroupRoot   string            `json:"cgroupRoot"`
		EvictionHard map[string]string `json:"evictionHard"`
		FeatureGates map[string]bool   `json:"featureGates"`
	}
	if err := yaml.Unmarshal(files[PKIDir+"/kubelet.yaml"], &kubelet); err != nil {
		t.Fatal(err)
	}
	if kubelet.CgroupRoot != "/liken-cluster/node-1" || kubelet.EvictionHard["nodefs.available"] != "0%" || !kubelet.FeatureGates["CSIVolumeHealth"] {
		t.Errorf("the kubelet's configuration reads %+v", kubelet)
	}
	var network struct {
		IPAM struct {
			Ranges [][]struct{ Subnet string }
		}
	}
	if err := json.Unmarshal(files["/etc/cni/net.d/10-liken-cluster.conf"], &network); err != nil {
		t.Fatal(err)
	}
	if got := network.IPAM.Ranges[0][0].Subnet; got != "10.213.1.0/24" {
		t.Errorf("pods get addresses from %s", got)
	}
	if id := strings.TrimSpace(string(files["/etc/machine-id"])); len(id) != 32 {
		t.Errorf("machine-id %q: want 32 characters", id)
	}
}

// A file that a command line names and nobody writes shows as a program that keeps
// ending.
func TestEveryNamedFileIsMade(t *testing.T) {
	c := plan(t)
	for _, machine := range c.Machines() {
		made := Configuration(c, machine, "overlayfs")
		credentials, err := Credentials(c)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for file := range credentials[machine] {
			names = append(names, file)
		}
		for file := range made {
			names = append(names, file)
		}
		text := string(made[PKIDir+"/kubelet.yaml"])
		for _, service := range Services(c, machine) {
			text += "\n" + strings.Join(service.Argv, "\n")
		}
		for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n=,{}", r) }) {
			if path.Dir(word) == PKIDir && !slices.Contains(names, word) {
				t.Errorf("%s: nobody makes %s", machine, word)
			}
		}
	}
}

// The kubelet's and the API server's sockets are addressed by at most 107 bytes.
func TestSocketPathsFit(t *testing.T) {
	for _, socket := range []string{
		ContainerdSocket,
		"/var/lib/kubelet/plugins_registry/per-node.liken.sh-reg.sock",
		"/var/lib/kubelet/plugins/per-node.liken.sh/csi.sock",
		"/var/lib/kubelet/plugins_registry/git.liken.sh-reg.sock",
		"/var/lib/kubelet/plugins/git.liken.sh/csi.sock",
	} {
		if len(socket) > 107 {
			t.Errorf("%s has %d bytes", socket, len(socket))
		}
	}
}

// containerd's parts each have a default, which is not there in a container.
func TestSnapshotterIsToldToAllWhoUseOne(t *testing.T) {
	config := string(Configuration(plan(t), layout.Node1, "native")["/etc/containerd/config.toml"])
	for _, part := range []string{"cri.v1.images", "transfer.v1.local"} {
		_, section, _ := strings.Cut(config, "[plugins.\"io.containerd."+part+"\"]\n")
		section, _, _ = strings.Cut(section, "\n\n")
		if !strings.Contains(section, `snapshotter = "native"`) {
			t.Errorf("%s has %q", part, section)
		}
	}
}
