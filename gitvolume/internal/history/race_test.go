//go:build race

package history

// raced tells that the race detector is on, which takes memory and time of its own.
const raced = true
