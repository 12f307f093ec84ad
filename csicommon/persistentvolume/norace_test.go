//go:build !race

package persistentvolume_test

const raced = false
