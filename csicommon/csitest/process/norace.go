//go:build !race

package process

// Raced tells whether the tests have the race detector.
const Raced = false
