//go:build soak && race

package soak

// raced has the program be built with the race detector too.
const raced = true
