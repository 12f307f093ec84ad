//go:build race

package process

// Raced tells whether the tests have the race detector, which makes all of it slower and
// larger.
const Raced = true
