//go:build !amd64

package gate

// ofPlatform are the calls that only this platform has: none.
func ofPlatform() map[uint32]signature { return nil }
