package writeable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/ignore"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/worktree"
)

// Volume is one writeable volume. Prepare or Resume comes first, then Run in a goroutine
// of its own, which ends with Stop. Arm and TakeCredential may be called by anybody at any
// time, and never wait.
type Volume struct {
	Settings

	tree     *worktree.Tree
	watch    Watch
	position store.Position
	// memory is what is remembered of the tree as of the tip, seen what was found since, and
	// agenda what may have changed since.
	memory, seen *worktree.Memory
	agenda       agenda
	tipTree      object.ID
	// record is the volume's own; foreign says that the one there is must not be replaced.
	record  metadata.Record
	foreign bool
	// unfit is the record that rerecord made last, if it is too large to be written, overfull
	// says that record is, and partial that record is not all that the tree has: the rest was
	// in an earlier process.
	unfit             metadata.Record
	overfull, partial bool
	class             ignore.Patterns
	clock             clock
	// pending is how many changes were found and not committed, pendingPath one of them, and
	// ahead how many commits the remote lacks.
	pending     int
	pendingPath string
	ahead       int
	// unrecorded says that the last look found modes, owners or empty directories that the
	// record has not.
	unrecorded bool
	// skips says that something may be left out.
	skips bool
	// late is of what counts while the position is Late.
	late lateness
	// sentOver is where the branch was when it was pushed to last.
	sentOver object.ID
	// unannounced says that a look at everything finds what no event had to announce: it is
	// older than the watch, other rules count now, or a commit failed of what events announced.
	unannounced bool
	// remembered is what the memory that was kept last is as of.
	remembered store.Remembered

	mail mailbox
	turn turn
	done chan struct{}
	// tried is closed once a push was tried, whatever became of it.
	tried chan struct{}
	// ran says that Run was called, which ends the watch.
	ran bool
}

// New is a volume that does nothing yet.
func New(settings Settings) *Volume {
	v := &Volume{Settings: settings, position: settings.Position, done: make(chan struct{}), tried: make(chan struct{}), skips: true}
	v.mail.init()
	v.take(settings.Arming)
	return v
}

// Close frees what a volume holds that does not run.
func (v *Volume) Close() error {
	if v.watch != nil && !v.ran {
		v.watch.Stop()
		v.watch = nil
	}
	if v.tree == nil {
		return nil
	}
	return v.closeTree()
}

// Position is where the volume is. Nothing else may run.
func (v *Volume) Position() store.Position { return v.position }

// Tried is closed once Run has tried to push, whatever became of it.
func (v *Volume) Tried() <-chan struct{} { return v.tried }

// noteTry tells who waits for it that a push was tried.
func (v *Volume) noteTry() {
	select {
	case <-v.tried:
	default:
		close(v.tried)
	}
}

// branch is the full name of the branch that the volume is on.
func (v *Volume) branch() string {
	if v.position.Diverged {
		return v.Side
	}
	return v.Ref
}

// step tells the test which change comes.
func (v *Volume) step(s Step) {
	if v.BeforeStep != nil {
		v.BeforeStep(s)
	}
}

// keep makes a position the one that counts, also after the process.
func (v *Volume) keep(p store.Position) error {
	v.step("keep the position")
	if err := v.Keeper.Keep(p); err != nil {
		return fmt.Errorf("write down where the volume is: %w", err)
	}
	v.position = p
	return nil
}

// anchor has the store's refs name what the position needs, so that nothing of it is ever
// removed. They may be ahead of the position, never behind: of a record that does not go on
// from the position's, or a commit, the Next ref has to be set first.
func (v *Volume) anchor(p store.Position) error {
	for _, a := range []struct {
		name string
		id   object.ID
	}{{v.Refs.Tip, p.Tip}, {v.Refs.Metadata, p.Metadata}, {v.Refs.Agreed, p.MetadataAgreed}} {
		if err := v.setRef(a.name, a.id); err != nil {
			return fmt.Errorf("keep %s from being removed: %w", a.id, err)
		}
	}
	return nil
}

// setRef makes a ref of the volume's own name an object; a zero id leaves it as it is.
func (v *Volume) setRef(name string, to object.ID) error {
	if to.IsZero() {
		return nil
	}
	from, err := v.Repository.Ref(name)
	if err != nil && !errors.Is(err, history.ErrNoRef) {
		return err
	}
	if from == to {
		return nil
	}
	v.step("set a ref")
	return v.Repository.SetRef(name, to, from)
}

// checkRoot tells whether the tree's path still is the directory that is open: of any
// other one nothing may be committed.
func (v *Volume) checkRoot() error {
	var stat unix.Stat_t
	err := unix.Lstat(v.Dir, &stat)
	identity := v.tree.Identity()
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is gone: %w; the next start makes it again of the last commit", v.Dir, ErrReplaced)
	}
	if err != nil || stat.Ino != identity.Inode || stat.Dev != identity.Device {
		return fmt.Errorf("%s: %w", v.Dir, ErrReplaced)
	}
	return nil
}

// committer is who commits, now.
func (v *Volume) committer() history.Signature {
	author := v.Arming.Policy.Author
	return history.Signature{Name: author.Name, Email: author.Email, When: time.Now()}
}

// commitTree is the tree of a commit, the empty one of none.
func (v *Volume) commitTree(commit object.ID) (object.ID, error) {
	if commit.IsZero() {
		return object.ID{}, nil
	}
	return v.Repository.CommitTree(commit)
}

// own tells unfinished files of a move by their names.
func (v *Volume) own(name string) bool {
	return v.position.Move != nil && intentOf(v.position.Move).Own(name)
}

// exists tells whether there is anything at the tree's path.
func (v *Volume) exists() (bool, error) {
	_, err := os.Lstat(v.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// mailbox is what others tell the volume.
type mailbox struct {
	wake chan struct{}

	mu         sync.Mutex
	arming     *Arming
	credential bool
	stop       *stopping
	// turn is the slot that the volume waited for.
	turn *slot
	// interrupt ends the network work that runs, when something comes that cannot wait.
	interrupt context.CancelFunc
}

func (m *mailbox) init() { m.wake = make(chan struct{}, 1) }

func (m *mailbox) put(change func()) {
	m.mu.Lock()
	change()
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}
