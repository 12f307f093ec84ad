// Package charts holds the tests of the Helm charts: what they accept, what they
// render, that it agrees with what the drivers and their documentation say, and
// what alerts and dashboards make of what real plugins exposed, which the drivers'
// own tests record. They run helm as hack/helm pins it, Prometheus's engine in
// memory, and no cluster.
//
// It must never hold anything but tests.
package charts
