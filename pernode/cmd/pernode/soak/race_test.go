//go:build soak && race

package soak

// raced has the program be built with the race detector too; it makes all of it slower and
// bigger.
const raced = true
