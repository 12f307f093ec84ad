package writeable

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/policy"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/watch"
	"liken.sh/gitvolume/internal/worktree"
)

var (
	// ErrReplaced says that the tree's root is not the directory that was made for the
	// volume. It must not be committed: what is missing in it nobody deleted.
	ErrReplaced = errors.New("the tree is not the directory that was made for this volume")
	// ErrForeignTree says that a new volume's directory is not empty.
	ErrForeignTree = errors.New("the directory is not empty, and no tree of this volume")
)

// Remote is the volume's repository elsewhere. Its credential may change at any time.
type Remote interface {
	// Turn waits until background work may be done, which has to end with within. release is
	// told how it ended.
	Turn(ctx context.Context) (within context.Context, release func(error), err error)
	// Fetch brings refs, by their full names, to the refs of the store that they map to. It
	// may join a fetch that runs already; FetchAnew brings what is there from now on.
	Fetch(ctx context.Context, refs map[string]string, urgency remote.Urgency) (map[string]remote.Fetched, error)
	FetchAnew(ctx context.Context, refs map[string]string, urgency remote.Urgency) (map[string]remote.Fetched, error)
	List(ctx context.Context, names ...string) (*remote.Refs, error)
	Push(ctx context.Context, branch remote.Update, metadata *remote.Update) (remote.Pushed, error)
	DeleteBranch(ctx context.Context, ref string, tip object.ID) error
}

// Watches watch trees.
type Watches interface {
	Start(root string) (Watch, error)
}

// Watch tells what may have changed in a tree; *watch.Watch is one.
type Watch interface {
	C() <-chan struct{}
	Take() watch.Hint
	TakeAll() watch.Hint
	Found(h watch.Hint, path string)
	Check(h watch.Hint, dirs iter.Seq2[string, watch.Inode]) (missing int)
	State() watch.State
	Stop()
}

// Keeper keeps what has to outlive the process. What it was given is durable when it
// returns, but for the Memory, without which a scan reads everything.
type Keeper interface {
	Keep(p store.Position) error
	KeepMemory(of store.Remembered, m *worktree.Memory) error
	// Memory is what was kept last and what it is as of; nil if there is none.
	Memory() (of store.Remembered, m *worktree.Memory)
	// Native says that work begins in which a crash ends the process, until done.
	Native() (done func())
}

// Refs are where the store keeps what the volume needs, by full names in its repository.
type Refs struct {
	// Tip, Next, Metadata, NextMetadata and Agreed keep objects from being removed; they are
	// the volume's own.
	Tip, Next, Metadata, NextMetadata, Agreed string
	// Upstream, UpstreamSide and UpstreamMetadata are what was fetched; others may share
	// them.
	Upstream, UpstreamSide, UpstreamMetadata string
}

// Arming says whether and how the volume is committed.
type Arming struct {
	// Policy counts also while it is not armed, for what would be committed.
	Policy policy.Policy
	// Class is the name of the class; empty for none.
	Class string
	// Unarmed is why the volume is not committed; nil if it is.
	Unarmed error
}

// ArmingOf is what a class makes of the volumes of the driver of that name. One that is
// unusable leaves them unarmed for the reason that it gives; one that pauses has its policy
// count all the same.
func ArmingOf(class policy.Class, driver string) Arming {
	p, err := class.Arm(driver)
	if err != nil && !errors.Is(err, policy.ErrPaused) {
		p = policy.Default()
	}
	return Arming{Policy: p, Class: class.Name, Unarmed: err}
}

// Settings are what a Volume needs. It owns the Repository and the Tree's directory.
type Settings struct {
	// Owner is named in the trailer of each commit: "<namespace>/<claim>".
	Owner string
	// Dir is the tree's root, made when the volume is new.
	Dir string
	// Root is what the root of a fresh tree is like, and Fresh what is in it. Group is the
	// volume mount group that the tree is given to, nil for none.
	Root  metadata.Seen
	Fresh metadata.Fresh
	Group *uint32
	// ForeignRoot says that mode, owner and group of the root itself are not the volume's:
	// they are neither recorded nor changed.
	ForeignRoot bool
	// Ref and Side are the full names of the volume's branch and of its side branch.
	Ref, Side  string
	Refs       Refs
	Repository *history.Repository
	Merger     history.Merger
	Remote     Remote
	Watches    Watches
	Keeper     Keeper
	Report     Report
	Durations  Durations
	Log        *slog.Logger
	// Arming and Position are what counts at first.
	Arming   Arming
	Position store.Position
	// Pending is told in Run's goroutine what would be committed, each time that was looked
	// for while the volume is not armed: one line a path, as a commit's message has them; nil:
	// nobody is.
	Pending func(lines []string)
	// ScanEvery is the time between two full scans.
	ScanEvery time.Duration
	// Jitter gives a number from 0 to 1, by which delays are spread.
	Jitter func() float64
	// Use has the repository be there, as it was when it was opened, until release is called.
	// An error for which history.IsBroken says that it is another by now.
	Use func(ctx context.Context) (release func(), err error)
	// Broken is told, in Run's goroutine, of an error for which history.IsBroken; nil: nobody
	// is. The volume is to be stopped then, and rebuilt.
	Broken func(err error)
	// BeforeStep is called before each change to what outlives the process, so that a test
	// can end it at every one; nil for none.
	BeforeStep func(Step)
}

// Step names one change to what outlives the process.
type Step string
