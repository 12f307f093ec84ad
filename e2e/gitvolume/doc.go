// Package gitvolume holds the end-to-end tests of the git driver: with a real kubelet,
// scheduler and API server, as `make cluster` starts them, real git servers in pods, and
// the chart and the manifests that users are given.
//
// They are behind the build tag e2e, since they change the cluster that KUBECONFIG
// names: they install the driver and stop nodes. They must never be part of the unit
// tests.
package gitvolume
