package credential

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"liken.sh/csicommon/errortext"
)

// bundlePrefix begins the names of files with certificates.
const bundlePrefix = "bundle-"

// Bundles are the files with certificates that the sessions of a process lend. Each has all
// of the system's, and they are in memory mostly: of one content there is one file, however
// many sessions have it.
type Bundles struct {
	dir string

	mu    sync.Mutex
	users map[string]int // By the file's path.
}

// NewBundles has files be made in an existing directory, which may be that of the sessions.
// It is this process's alone.
func NewBundles(dir string) *Bundles { return &Bundles{dir: dir, users: map[string]int{}} }

// take gives a file with the content, which is there until all who took it have called
// release, each once.
func (b *Bundles) take(content string) (path string, release func(), err error) {
	sum := sha256.Sum256([]byte(content))
	path = filepath.Join(b.dir, bundlePrefix+hex.EncodeToString(sum[:])+".pem")
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.users[path] == 0 {
		if err := os.WriteFile(path, []byte(content), publicFileMode); err != nil {
			_ = os.Remove(path) // The room that a part of it takes is somebody else's.
			return "", nil, fmt.Errorf("write the certificates: %w", errortext.WithoutPath(err))
		}
	}
	b.users[path]++
	return path, func() { b.release(path) }, nil
}

func (b *Bundles) release(path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.users[path]--; b.users[path] > 0 {
		return
	}
	delete(b.users, path)
	_ = os.Remove(path) // What is left goes with RemoveSessions.
}
