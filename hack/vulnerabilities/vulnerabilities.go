// Package vulnerabilities is the test of the script beside it. It must never ask the
// network.
package vulnerabilities
