package remote

import (
	"fmt"
	"os"
	"path/filepath"
)

// mostWithoutRoom is how many bytes a fetch may have received where there is no room for
// more: volumes that are there go on with what they are used to, while a server that sends
// without end does not come far.
const mostWithoutRoom = 64 << 20

// checkRoom returns nil as long as the run may receive more. The error wraps ErrNoRoom and
// that of Settings.Room.
func (p *process) checkRoom() error {
	if !p.run.receives || p.command.settings.Room == nil {
		return nil
	}
	full := p.command.settings.Room()
	if full == nil || receiving(p.run.dir) <= mostWithoutRoom {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrNoRoom, full)
}

// receiving is the size of the packs that a fetch is writing, in bytes. By the environment's
// proxy the link sees no byte of them.
func receiving(dir string) int64 {
	var size int64
	packs, _ := filepath.Glob(filepath.Join(escapeGlob(dir), "objects", unfinishedPack))
	for _, pack := range packs {
		if info, err := os.Lstat(pack); err == nil {
			size += info.Size()
		}
	}
	return size
}
