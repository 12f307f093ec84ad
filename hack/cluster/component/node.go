package component

import (
	"fmt"
	"runtime"

	"liken.sh/hack/cluster/layout"
)

// The names of a node's programs.
const (
	Containerd = "containerd"
	Kubelet    = "kubelet"
)

// ContainerdSocket is where a node's containerd listens.
const ContainerdSocket = "/run/containerd/containerd.sock"

// PauseImage is the image that keeps a pod's namespaces.
const PauseImage = "liken.sh/pause:1"

func nodeServices(c layout.Cluster, node string) []Service {
	return []Service{
		{Name: Containerd, Argv: []string{ContainerdBin + "/containerd", "--config=/etc/containerd/config.toml"}},
		{Name: Kubelet, Argv: []string{
			KubernetesBin + "/kubelet",
			"--config=" + PKIDir + "/kubelet.yaml",
			"--kubeconfig=" + PKIDir + "/kubelet.kubeconfig",
			"--hostname-override=" + node,
			fmt.Sprintf("--node-ip=%s", c.Address(node)),
		}},
	}
}

func nodeFiles(c layout.Cluster, node, snapshotter string) Files {
	return Files{
		"/etc/containerd/config.toml":          containerdConfig(snapshotter),
		"/etc/cni/net.d/10-liken-cluster.conf": podNetwork(c, node),
		PKIDir + "/kubelet.yaml":               kubeletConfig(c, node),
	}
}

func kubeletConfig(c layout.Cluster, node string) []byte {
	return fmt.Appendf(nil, `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[1]s/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: %[1]s/kubelet.crt
tlsPrivateKeyFile: %[1]s/kubelet.key
containerRuntimeEndpoint: unix://%[2]s
# Its pods' control groups stay apart from the host's and from the other node's.
cgroupRoot: %[3]s
cgroupDriver: cgroupfs
failCgroupV1: false
enforceNodeAllocatable: []
failSwapOn: false
# The host's disk is not the cluster's to tidy up.
imageGCHighThresholdPercent: 100
evictionHard:
  imagefs.available: "0%%"
  nodefs.available: "0%%"
  nodefs.inodesFree: "0%%"
# The default lies below /usr, which a machine has read-only.
volumePluginDir: /var/lib/kubelet/volumeplugins
resolvConf: /etc/resolv.conf
featureGates: {CSIVolumeHealth: true}
`, PKIDir, ContainerdSocket, c.Cgroup(node))
}

// containerdConfig names the sandbox image, since the default would be pulled, and
// leaves out what this machine has no use for and would be warned about.
func containerdConfig(snapshotter string) []byte {
	return fmt.Appendf(nil, `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.nri.v1.nri",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
  address = %q

[plugins."io.containerd.cri.v1.images"]
  snapshotter = %q
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = %q

# Where the default one cannot work, which is on top of another overlay, a part is
# missing without this that all others want.
[plugins."io.containerd.transfer.v1.local"]
  [[plugins."io.containerd.transfer.v1.local".unpack_config]]
    platform = "linux/%s"
    snapshotter = %[2]q

[plugins."io.containerd.cri.v1.runtime"]
  # A host may lack the right to protect a process from the OOM killer.
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false
`, ContainerdSocket, snapshotter, PauseImage, runtime.GOARCH)
}

// podNetwork needs no address translation: every part of the cluster, the host
// included, has a route to the pods.
func podNetwork(c layout.Cluster, node string) []byte {
	return fmt.Appendf(nil, `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "type": "bridge",
  "bridge": "pods",
  "isGateway": true,
  "ipMasq": false,
  "hairpinMode": true,
  "ipam": {
    "type": "host-local",
    "ranges": [[{"subnet": %q}]],
    "routes": [{"dst": "0.0.0.0/0"}]
  }
}
`, c.Pods(node).String())
}
