//go:build race

package nodetest

// raced has the program be built with the race detector too; it makes all of it slower.
const raced = true
