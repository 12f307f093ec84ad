//go:build race

package persistentvolume_test

// raced says that the race detector, which multiplies memory, is in this binary.
const raced = true
