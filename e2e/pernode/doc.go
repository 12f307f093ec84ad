// Package pernode holds the end-to-end tests of the per-node driver: with a real
// kubelet, scheduler and API server, as `make cluster` starts them, and the chart
// and the manifests that users are given.
//
// They are behind the build tag e2e, since they change the cluster that KUBECONFIG
// names: they install the driver, stop nodes and kill kubelets. They must never be
// part of the unit tests.
package pernode
