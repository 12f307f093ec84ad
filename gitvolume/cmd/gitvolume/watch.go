package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"liken.sh/csicommon/nodeplugin"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/writeable"
)

// backgroundEnd is how long what works in the background may take to end.
const backgroundEnd = 5 * time.Second

// runWatch is the command watch.
func runWatch(arguments []string) int {
	options, err := parseOptions(arguments)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(watchUsage())
		return 0
	case err != nil:
		return unusable(err)
	}
	ctx := untilEnding(endings(options)...)
	hangups := make(chan os.Signal, 1)
	if options.class != "" {
		signal.Notify(hangups, syscall.SIGHUP)
	}
	// A reader of the lines who leaves must not end the process before it has committed.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	w, err := newWatcher(options)
	if err != nil {
		return unusable(err)
	}
	code := w.run(ctx, hangups)
	if err := w.close(); err != nil {
		w.log.Warn("the store was not given up cleanly", "error", err)
	}
	return code
}

// run follows the directory until ctx ends.
func (w *watcher) run(ctx context.Context, hangups <-chan os.Signal) int {
	if err := w.store.Recover(ctx, w.children.command); err != nil && ctx.Err() == nil {
		w.log.Warn("not all of the store could be repaired", "error", err)
	}
	w.printer.Print("watching", fmt.Sprintf("%s, for %s of %s; the history is in %s",
		w.place.dir, w.asked.Ref, w.asked.URL.Repo(), w.store.Dir()))
	if reason, err := w.store.Volatile(); err == nil && reason != "" {
		w.printer.Print("beware", reason)
	}
	if err := w.volume.Publish(ctx); err != nil {
		if ctx.Err() != nil {
			w.printer.Print("stopped", "nothing was begun")
			return exitFailed
		}
		return unusable(w.explained(err))
	}
	background, endBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer endBackground()
	var behind sync.WaitGroup
	behind.Go(func() { w.store.KeepTidy(background, w.children.command.GC) })
	behind.Go(func() { w.store.EmptyTrash(background) })
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-hangups:
			w.rearm()
		}
	}
	code := w.stop()
	endBackground()
	if !nodeplugin.EndsWithin(&behind, backgroundEnd) {
		w.children.keepRuntime()
		w.log.Warn("ending although the disk does not answer")
	}
	return code
}

// explained adds to an error of the start, or of the end, what is to be done.
func (w *watcher) explained(err error) error {
	var missing *remote.MissingRef
	switch {
	case errors.Is(err, writeable.ErrReplaced):
		return fmt.Errorf("%q is not the directory that was watched, and nothing was changed: if its disk is not mounted, mount it; "+
			"if it was copied or made anew, move it away, and the last commit is put in its place", w.place.dir)
	case errors.Is(err, writeable.ErrForeignTree):
		return fmt.Errorf("%q is not empty any more: watch an empty directory", w.place.dir)
	case errors.As(err, &missing):
		return fmt.Errorf("--ref: %w", err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: make room for the store %q and for %q", err, w.options.store, w.place.dir)
	}
	return err
}

// rearm reads the class again. One that cannot be used pauses the directory, and is said.
func (w *watcher) rearm() {
	arming, _ := readClass(w.options.class) // The error is in the arming.
	w.arming = arming
	w.pending.forget()
	if err := w.volume.Arm(arming); err != nil {
		w.printer.Print("wrong", "the class counts until the end, and could not be written down: "+nodeplugin.OneLine(err.Error()))
	}
}

// stop commits and pushes the last that was written, and says what of it did not arrive.
func (w *watcher) stop() int {
	w.printer.Print("stopping", w.intent()+"; a second signal ends at once")
	err := w.volume.Stop(context.Background(), w.options.stopPushTimeout)
	code, last := w.outcome(w.volume.Position(), err)
	w.printer.Print("stopped", last)
	return code
}

// intent is what is about to be done at the end.
func (w *watcher) intent() string {
	bound := w.options.stopPushTimeout
	switch {
	case w.arming.Unarmed != nil && bound > 0 && w.volume.Position().HasUnpushed():
		return fmt.Sprintf("what was written last is not committed, and the commits that the remote lacks are pushed, for %s at most", bound)
	case w.arming.Unarmed != nil:
		return "what was written last is not committed"
	case bound == 0:
		return "what was written last is committed, and not pushed"
	}
	return fmt.Sprintf("what was written last is committed and pushed, for %s at most", bound)
}

// outcome is the exit code and the last line, by where the volume is after its stop.
func (w *watcher) outcome(position store.Position, err error) (code int, last string) {
	switch {
	case (err != nil || !position.Stopped) && isGone(w.store.Dir()):
		return exitFailed, fmt.Sprintf("the store %q is gone, and the next start knows nothing of %q: watch an empty directory and move the files there afterwards",
			w.store.Dir(), w.place.dir)
	case !position.Stopped && isGone(w.place.dir):
		return exitFailed, fmt.Sprintf("%q is gone, with what was not committed: the next start makes it again of the last commit", w.place.dir)
	case !position.Stopped && w.isReplaced(position):
		return exitFailed, w.explained(writeable.ErrReplaced).Error()
	case err != nil:
		return exitFailed, "what was written last is not committed, and is at the next start: " + nodeplugin.OneLine(w.explained(err).Error())
	case !position.Stopped:
		return exitFailed, "what was written last is not committed, for the reason above"
	case position.HasUnpushed() && w.isRefGone():
		return exitFailed, fmt.Sprintf("there are commits on this machine alone, in %s, and nothing is pushed until %s exists again: make the branch again on the server",
			w.store.Dir(), w.asked.Ref)
	case position.HasUnpushed():
		return exitFailed, "there are commits on this machine alone, in " + w.store.Dir() + "; the next start pushes them"
	}
	last = "nothing is committed while there is no class in force"
	if w.arming.Unarmed == nil {
		last = arrived(position, w.report.LeftOut())
	}
	if position.Diverged {
		last += fmt.Sprintf("; the branch is %s, until it is merged into %s", w.side(), w.asked.Ref)
	}
	return 0, last
}

// arrived says that all is on the remote, and what is not counted: a person who deletes the
// directory upon it must not lose a file.
func arrived(position store.Position, leftOut int) string {
	var but []string
	if position.HasUnrecorded() {
		but = append(but, "modes, owners and empty directories")
	}
	switch {
	case leftOut == 1:
		but = append(but, "1 path that is left out")
	case leftOut > 1:
		but = append(but, fmt.Sprintf("%d paths that are left out", leftOut))
	}
	if len(but) == 0 {
		return "all is on the remote"
	}
	return "all is on the remote but for " + strings.Join(but, ", and for ")
}

func isGone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// isReplaced tells whether another directory is where the watched one was.
func (w *watcher) isReplaced(position store.Position) bool {
	found, err := store.Identify(w.place.dir)
	return err == nil && found != position.Tree
}

// isRefGone tells whether the remote was found to have the branch no more.
func (w *watcher) isRefGone() bool {
	return slices.ContainsFunc(w.report.Abnormal(), func(r report.Reason) bool { return r.Reason == string(report.RefDeleted) })
}

// side is the short name of the side branch.
func (w *watcher) side() string {
	return strings.TrimPrefix(attributes.SideBranch(w.asked.Ref.Branch(), w.record.Handle), "refs/heads/")
}

// pendingPrinter prints what would be committed, when that changes.
type pendingPrinter struct {
	say func(what, more string)

	mu   sync.Mutex
	last string
}

func (p *pendingPrinter) tell(lines []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := strings.Join(lines, "\n")
	if all == p.last {
		return
	}
	p.last = all
	if len(lines) == 0 {
		p.say("would commit", "nothing any more")
	}
	for _, line := range lines {
		p.say("would commit", line)
	}
}

// forget has the same be told again.
func (p *pendingPrinter) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = ""
}
