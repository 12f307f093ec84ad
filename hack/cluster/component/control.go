package component

import (
	"fmt"

	"liken.sh/hack/cluster/layout"
)

// The names of a control machine's programs, which are also those of their
// certificates and kubeconfigs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
)

// PKIDir is where a machine keeps its keys, certificates and kubeconfigs.
const PKIDir = "/etc/kubernetes"

func controlServices(c layout.Cluster) []Service {
	return []Service{
		{Name: Etcd, Argv: []string{
			EtcdBin + "/etcd",
			"--data-dir=/var/lib/etcd",
			"--listen-client-urls=http://127.0.0.1:2379",
			"--advertise-client-urls=http://127.0.0.1:2379",
			"--listen-peer-urls=http://127.0.0.1:2380",
			// The cluster is thrown away with the machine's disk.
			"--unsafe-no-fsync",
			"--log-level=warn",
		}},
		{Name: APIServer, Argv: apiServer(c)},
		{Name: ControllerManager, Argv: []string{
			KubernetesBin + "/kube-controller-manager",
			"--kubeconfig=" + PKIDir + "/" + ControllerManager + ".kubeconfig",
			"--bind-address=127.0.0.1",
			"--leader-elect=false",
			"--root-ca-file=" + PKIDir + "/ca.crt",
			"--service-account-private-key-file=" + PKIDir + "/service-account.key",
			"--use-service-account-credentials",
			"--feature-gates=" + gates,
		}},
		{Name: Scheduler, Argv: []string{
			KubernetesBin + "/kube-scheduler",
			"--kubeconfig=" + PKIDir + "/" + Scheduler + ".kubeconfig",
			"--bind-address=127.0.0.1",
			"--leader-elect=false",
			"--feature-gates=" + gates,
		}},
	}
}

func apiServer(c layout.Cluster) []string {
	return []string{
		KubernetesBin + "/kube-apiserver",
		"--etcd-servers=http://127.0.0.1:2379",
		// All addresses of the machine's own network, the cluster IP of the Service
		// kubernetes among them. None of them is the host's.
		"--bind-address=0.0.0.0",
		"--secure-port=443",
		fmt.Sprintf("--advertise-address=%s", c.Address(layout.Control)),
		fmt.Sprintf("--service-cluster-ip-range=%s", c.Services()),
		"--allow-privileged",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--client-ca-file=" + PKIDir + "/ca.crt",
		"--tls-cert-file=" + PKIDir + "/" + APIServer + ".crt",
		"--tls-private-key-file=" + PKIDir + "/" + APIServer + ".key",
		"--kubelet-certificate-authority=" + PKIDir + "/ca.crt",
		"--kubelet-client-certificate=" + PKIDir + "/" + APIServer + ".crt",
		"--kubelet-client-key=" + PKIDir + "/" + APIServer + ".key",
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + PKIDir + "/service-account.key",
		"--service-account-signing-key-file=" + PKIDir + "/service-account.key",
		"--feature-gates=" + gates,
	}
}
