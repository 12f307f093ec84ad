package watch

import (
	"sync"
	"time"

	"github.com/rjeczalik/notify"
	"golang.org/x/sys/unix"
)

const (
	// room is how many events wait for this package before notify drops them.
	room = 4096
	// attempts is how often the set-up is tried in a tree that changes meanwhile.
	attempts = 3
	// renewShare keeps setting up all watches anew at one part in so many of the time:
	// it takes notify seconds for some 10,000 directories, with the square of their
	// number, and holds up the events of every tree.
	renewShare = 100

	// mostDirectories is how large a watched tree may be. For each directory that is
	// removed, notify looks through all watches it has, while it piles up what else
	// happens: a tree of 90,000 directories took it 2 minutes and 300 MiB to forget.
	mostDirectories = 16_384

	// kernelMask is what notify asks the kernel for, given the events of mask.
	kernelMask = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_DELETE | unix.IN_DELETE_SELF |
		unix.IN_MODIFY | unix.IN_MOVED_FROM | unix.IN_MOVE_SELF | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE
)

// mask is every event that can mean a change of what is committed. Reading and
// opening are not among them, so the owner's own look wakes nobody.
func mask() []notify.Event {
	return []notify.Event{
		notify.Create, notify.Remove, notify.Rename, notify.Write,
		notify.InAttrib,     // Modes and owners.
		notify.InCloseWrite, // A writer through a memory map is seen at least here.
	}
}

// Watch watches one tree. One goroutine, the owner's, may take hints and check; the
// other methods are for any.
type Watch struct {
	trees  *Trees
	root   string // Without links.
	path   string // Where notify is to look for it: the same directory.
	self   Inode  // The root, when it was started on.
	device uint64

	events  chan notify.EventInfo
	ready   chan struct{}
	stop    chan struct{}
	stopped chan struct{}

	// The owner's alone: when all watches were last set up, and what that cost.
	renewedAt time.Time
	renewCost time.Duration

	// setup is held while notify is told to watch the tree, or to forget it, and taken
	// before mu.
	setup sync.Mutex

	mu       sync.Mutex
	pending  pending
	settling settling
	gone     bool
	stale    bool // notify's paths or watches are wrong: they are to be set up anew.

	missing     int
	directories int // Of the tree, as it was last counted and events told since.
	names       *names
	tooMany     bool // The tree has more directories than are watched.
	worn        bool // notify has more names of them than it may have, and forgets none.
	putOff      bool // Stale, and it is too soon to do something about it.
	losses      int  // How often events were, most likely, lost.
	lostSince   bool // ... and nothing was checked since.
	misses      int  // How many changes were found that nothing announced.
	unannounced map[string]time.Time
	unnamed     time.Time // When the first of those came that found no room in the map.
}

// C says that there is a hint to take. It is never closed.
func (w *Watch) C() <-chan struct{} { return w.ready }

// Root is the path of the watched tree, without links.
func (w *Watch) Root() string { return w.root }

// Stop ends the watch, and leaves those of other trees alone. The kernel watches
// nothing of the tree for it when it returns. It may be called once.
func (w *Watch) Stop() {
	w.trees.forget(w)
	notify.Stop(w.events)
	close(w.stop)
	<-w.stopped
	w.endSettling()
}

func (w *Watch) drain() {
	defer close(w.stopped)
	for {
		select {
		case <-w.stop:
			return
		case event := <-w.events:
			w.receive(event, len(w.events))
		}
	}
}

// receive notes an event; behind it, waiting more wait.
func (w *Watch) receive(event notify.EventInfo, waiting int) {
	w.trees.arrived(time.Now())
	// A full channel may have been overrun, one that fills up will be.
	if waiting >= room-1 {
		w.trees.flooded()
	}
	w.mu.Lock()
	if waiting >= room/2 {
		w.pending.addEverything()
	}
	resigns := w.grew(w.note(event))
	w.mu.Unlock()
	if resigns {
		w.unwatch()
	}
	w.signal()
}

// unwatch has notify forget the tree, unless it is to be watched again by now.
func (w *Watch) unwatch() {
	w.setup.Lock()
	defer w.setup.Unlock()
	w.mu.Lock()
	isResigned := w.tooMany || w.worn
	w.mu.Unlock()
	if isResigned {
		notify.Stop(w.events)
	}
}

// signal never waits: one signal stands for all that is pending.
func (w *Watch) signal() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// doubt has the owner look at everything, because events may have been lost.
func (w *Watch) doubt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending.addEverything()
	w.signal()
}

// lost is doubt with more reason.
func (w *Watch) lost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.losses++
	w.lostSince = true
	w.pending.addEverything()
	w.signal()
}

// renew sets up all watches anew, which is the only way to make notify forget what it
// wrongly believes. What happens meanwhile may announce nothing.
func (w *Watch) renew() {
	w.setup.Lock()
	defer w.setup.Unlock()
	w.mu.Lock()
	// First: what makes the watches wrong from here on has to be dealt with again.
	w.stale, w.putOff = false, false
	w.mu.Unlock()

	start := time.Now()
	path := w.path + "/..."
	for attempt := range attempts {
		notify.Stop(w.events)
		if notify.Watch(path, w.events, mask()...) == nil {
			break
		}
		if attempt == attempts-1 {
			// Once more, on top of what the failed one left: that gives the events of
			// all directories it came to. Check finds those it did not come to.
			_ = notify.Watch(path, w.events, mask()...)
		}
	}
	w.renewedAt = time.Now()
	w.renewCost = w.renewedAt.Sub(start)
}

// renewable says whether it is not too soon to set up all watches anew.
func (w *Watch) renewable() bool {
	return time.Since(w.renewedAt) >= renewShare*w.renewCost
}

func (w *Watch) held() held {
	return held{sorted: watchesHeld(), from: w.self, to: w.device}
}
