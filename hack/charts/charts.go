// Package charts holds the tests of the Helm charts: what they accept, what they
// render, and that it agrees with what the drivers and their documentation say.
// They run helm as hack/helm pins it, and no cluster.
//
// It must never hold anything but tests.
package charts
