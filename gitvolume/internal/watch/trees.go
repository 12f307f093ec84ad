package watch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rjeczalik/notify"
)

// ErrRoot is wrapped by Start's error when the root can be no watched tree.
var ErrRoot = errors.New("not a directory that can be watched")

// Trees are all the watched trees of a process; there has to be one for all of them,
// because notify gives a process one inotify instance: when its queue overflows by
// the events of one tree, those of every tree may be lost. It is safe for concurrent
// use.
type Trees struct {
	mu      sync.Mutex
	burst   burst
	watches map[*Watch]struct{}
	most    int // How many directories a tree may have.
	names   int // By how many paths notify may know directories of one.
	view    view
}

// view is another mount of the directory dir, at at; empty: there is none.
type view struct{ dir, at string }

// New makes the Trees of this process. It watches nothing yet.
func New() *Trees {
	return &Trees{burst: burst{queue: queueLimit()}, watches: map[*Watch]struct{}{}, most: mostDirectories, names: mostNames}
}

// Through has the trees below dir be watched below at, a mount of dir that follows no
// links; both are paths without links. It is called before the first Start.
func (t *Trees) Through(dir, at string) { t.view = view{dir: dir, at: at} }

// of is the path at which the view shows root, if it does: what is mounted below its
// directory is not in it.
func (v view) of(root string, self Inode) string {
	rest, below := strings.CutPrefix(root, v.dir+"/")
	if v.at == "" || !below {
		return root
	}
	shown := filepath.Join(v.at, rest)
	if there, err := inodeOf(shown); err != nil || there != self {
		return root
	}
	return shown
}

// Start watches the tree below root, whose links are resolved once. It is no error
// when the kernel refuses watches, or the tree has too many directories: the State is
// degraded then. The first hint is to look at everything, because nothing told what
// happened before. The caller has to Stop the Watch.
func (t *Trees) Start(root string) (*Watch, error) {
	root, err := resolve(root)
	if err != nil {
		return nil, err
	}
	self, err := inodeOf(root)
	if err != nil {
		return nil, fmt.Errorf("stat the root: %w", err)
	}
	w := &Watch{
		trees:       t,
		root:        root,
		path:        t.view.of(root, self),
		self:        self,
		device:      kernelDevice(root, self),
		events:      make(chan notify.EventInfo, room),
		ready:       make(chan struct{}, 1),
		stop:        make(chan struct{}),
		stopped:     make(chan struct{}),
		unannounced: map[string]time.Time{},
		names:       newNames(t.names),
	}
	w.pending.addEverything()
	w.counted(w.count())
	t.mu.Lock()
	t.watches[w] = struct{}{}
	t.mu.Unlock()
	go w.drain()
	if !w.tooMany {
		w.renew()
	}
	if !w.held().has(self) {
		w.missing = 1
	}
	keepFromChildren()
	w.signal()
	return w, nil
}

func resolve(root string) (string, error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return "", fmt.Errorf("find the root %q: %w", root, err)
	}
	resolved, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return "", fmt.Errorf("find the root: %w", err)
	}
	info, err := os.Lstat(resolved)
	if err != nil {
		return "", fmt.Errorf("find the root: %w", err)
	}
	if !info.IsDir() || resolved == "/" {
		return "", fmt.Errorf("%q: %w", root, ErrRoot)
	}
	return resolved, nil
}

// arrived counts one event of any tree. Every tree is told when so many came that
// the kernel may have dropped some.
func (t *Trees) arrived(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch t.burst.add(now) {
	case burstMany:
		t.each((*Watch).doubt)
	case burstFlood:
		t.each((*Watch).lost)
	}
}

// flooded tells every tree that events were lost.
func (t *Trees) flooded() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.each((*Watch).lost)
}

func (t *Trees) each(tell func(*Watch)) {
	for w := range t.watches {
		tell(w)
	}
}

func (t *Trees) forget(w *Watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.watches, w)
}
