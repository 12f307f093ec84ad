package component

import (
	"net/netip"

	"liken.sh/hack/cluster/layout"
	"liken.sh/hack/cluster/pki"
)

// Admin is the user of the kubeconfig for people, and its key in what Credentials
// returns.
const Admin = "admin"

// Credentials makes the keys, certificates and kubeconfigs of the whole cluster:
// files by machine, and under Admin the kubeconfig for people.
func Credentials(c layout.Cluster) (map[string]Files, error) {
	authority, err := pki.NewAuthority("liken-cluster")
	if err != nil {
		return nil, err
	}
	made := map[string]Files{layout.Control: {PKIDir + "/ca.crt": authority.Certificate}}
	// Kubernetes knows these users: RBAC has roles for them from the start. The
	// control machine's programs dial the API server on their own machine.
	for _, name := range []string{ControllerManager, Scheduler} {
		subject := pki.Subject{Name: "system:" + name}
		if err := made[layout.Control].addKubeconfig(c, authority, name, subject); err != nil {
			return nil, err
		}
	}
	if err := made[layout.Control].addPair(authority, APIServer, apiServerSubject(c)); err != nil {
		return nil, err
	}
	account, err := authority.Issue(pki.Subject{Name: "service-account"})
	if err != nil {
		return nil, err
	}
	made[layout.Control][PKIDir+"/service-account.key"] = account.Key

	for _, node := range c.Nodes() {
		made[node] = Files{PKIDir + "/ca.crt": authority.Certificate}
		subject := pki.Subject{
			Name: "system:node:" + node, Groups: []string{"system:nodes"},
			DNS: []string{node}, Addresses: []netip.Addr{c.Address(node)},
		}
		if err := made[node].addPair(authority, Kubelet, subject); err != nil {
			return nil, err
		}
		if err := made[node].addKubeconfig(c, authority, Kubelet, subject); err != nil {
			return nil, err
		}
	}
	made[Admin] = Files{}
	return made, made[Admin].addKubeconfig(c, authority, Admin, pki.Subject{Name: Admin, Groups: []string{"system:masters"}})
}

// apiServerSubject serves under every name and address a client knows the API
// server by. The same certificate is its client's to the kubelets, where the group
// lets it read logs and start commands.
func apiServerSubject(c layout.Cluster) pki.Subject {
	return pki.Subject{
		Name: APIServer, Groups: []string{"system:masters"},
		DNS: []string{
			layout.Control, "localhost", "kubernetes", "kubernetes.default",
			"kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		},
		Addresses: []netip.Addr{
			c.Address(layout.Control), c.APIService(), netip.AddrFrom4([4]byte{127, 0, 0, 1}),
		},
	}
}

func (f Files) addPair(authority *pki.Authority, name string, subject pki.Subject) error {
	pair, err := authority.Issue(subject)
	if err != nil {
		return err
	}
	f[PKIDir+"/"+name+".crt"] = pair.Certificate
	f[PKIDir+"/"+name+".key"] = pair.Key
	return nil
}

func (f Files) addKubeconfig(c layout.Cluster, authority *pki.Authority, name string, subject pki.Subject) error {
	pair, err := authority.Issue(subject)
	if err != nil {
		return err
	}
	content, err := pki.Kubeconfig(c.Server(), subject.Name, authority.Certificate, pair)
	if err != nil {
		return err
	}
	f[KubeconfigPath(name)] = content
	return nil
}

// KubeconfigPath is where a program's kubeconfig is on its machine.
func KubeconfigPath(name string) string { return PKIDir + "/" + name + ".kubeconfig" }
