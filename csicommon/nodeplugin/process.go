package nodeplugin

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/server"
)

// The exit codes. A start that cannot work until somebody changes something ends
// with ExitUnusable, so that it can be told from a crash.
const (
	ExitFailed   = 1
	ExitUnusable = 2
)

// Process is a command that serves until it is told to end, a plugin's or another.
type Process struct {
	// Flags are all of the command's. They have the name by which the command is called,
	// of which the first word is the program's.
	Flags *flag.FlagSet
	// Version is the flag by which the version is asked for.
	Version *bool
	// Reword has what Parse refuses be said in the program's own way; nil: as it is.
	Reword func(error) error
	// Check refuses what the flags say and cannot work.
	Check func() error
	// About is one line for the help, and Needs the flags that cannot be left out, each
	// with a blank behind it.
	About, Needs string
	// Start makes and binds all that can be refused at the start.
	Start func(context.Context) (Running, error)
}

// Running is a process that has started.
type Running struct {
	Log *slog.Logger
	// Run serves until its context ends.
	Run func(context.Context) error
}

// Run is the life of the process. It returns its exit code.
func (p Process) Run(arguments []string) int {
	switch err := Parse(p.Flags, arguments); {
	case errors.Is(err, flag.ErrHelp):
		return p.show(p.usage())
	case err != nil && p.Reword != nil:
		return p.refuse(p.Reword(err))
	case err != nil:
		return p.refuse(err)
	case *p.Version:
		return p.show(VersionText(p.program()))
	}
	if err := p.Check(); err != nil {
		return p.refuse(err)
	}
	if err := keepMemory(); err != nil {
		return p.refuse(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// The first signal asks for a clean end, a second one ends at once.
	context.AfterFunc(ctx, stop)
	running, err := p.Start(ctx)
	if err != nil {
		return p.refuse(err)
	}
	switch err := running.Run(ctx); {
	case errors.Is(err, server.ErrSocket):
		return p.refuse(err) // The registration socket, made last of all.
	case err != nil:
		running.Log.Error("the plugin failed", "error", err)
		return ExitFailed
	}
	return 0
}

// keepMemory has a crash leave no copy of the memory, which has credentials, on a disk. Where
// a program of the host takes the dumps, a limit of their size counts for nothing, so the
// process is made one that is not dumped at all. To one of another user than root that would
// close its own files below /proc.
func keepMemory() error {
	if os.Geteuid() != 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("have crashes leave no dump of the memory: %w", err)
	}
	return nil
}

func (p Process) program() string {
	program, _, _ := strings.Cut(p.Flags.Name(), " ")
	return program
}

// refuse says in one line why the process does not start.
func (p Process) refuse(err error) int {
	fmt.Fprintln(os.Stderr, p.program()+": "+OneLine(err.Error()))
	return ExitUnusable
}

// show is for whoever asked, and may have gone by now.
func (p Process) show(text string) int {
	_, _ = os.Stdout.WriteString(text)
	return 0
}

func (p Process) usage() string {
	return p.About + "\n\nUsage: " + p.Flags.Name() + " " + p.Needs + "[flags]\n\n" + FlagsText(p.Flags) +
		"\nExit codes: 0 after a clean stop, 1 when it failed while running,\n2 when it cannot start until something is changed.\n"
}

// Together runs the parts until ctx ends or one fails, which ends the others, and returns
// what went wrong.
func Together(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(parts))
	var group sync.WaitGroup
	for i, part := range parts {
		group.Go(func() {
			if errs[i] = part(ctx); errs[i] != nil {
				stop()
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
