// Package component says how each program of the cluster is started: its command
// line, and the files it reads. It only computes text: it must never start or
// write anything.
package component

import (
	"maps"

	"liken.sh/hack/cluster/layout"
)

// Where a machine sees the programs that were built, one directory per set.
const (
	KubernetesBin = "/opt/kubernetes"
	ContainerdBin = "/opt/containerd"
	EtcdBin       = "/opt/etcd"
)

// Service is a program that a machine keeps running.
type Service struct {
	// Name is also its log's: /var/log/<name>.log on the machine.
	Name string
	Argv []string
}

// Files maps the path of a file on a machine to its content.
type Files map[string][]byte

// gates are the feature gates of every Kubernetes program. Volume health is off by
// default and is what a driver's reports of broken volumes go through.
const gates = "CSIVolumeHealth=true"

// Services are the machine's programs.
func Services(c layout.Cluster, machine string) []Service {
	if machine == layout.Control {
		return controlServices(c)
	}
	return nodeServices(c, machine)
}

// Configuration are the files that the machine's programs read, certificates and
// kubeconfigs excepted.
func Configuration(c layout.Cluster, machine, snapshotter string) Files {
	files := system(c, machine)
	if machine != layout.Control {
		maps.Copy(files, nodeFiles(c, machine, snapshotter))
	}
	return files
}
