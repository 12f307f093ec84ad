package nodeplugin

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"liken.sh/csicommon/build"
	"liken.sh/csicommon/server"
)

// The exit codes. A start that cannot work until somebody changes something ends
// with ExitUnusable, so that it can be told from a crash.
const (
	ExitFailed   = 1
	ExitUnusable = 2
)

// Command is a plugin as a person, or a kubelet's container, starts it.
type Command struct {
	// Flags are all of the plugin's, those of Options among them. They have the name by
	// which the command is called, of which the first word is the program's.
	Flags   *flag.FlagSet
	Options *Options
	// Reword has what Parse refuses be said in the program's own way; nil: as it is.
	Reword func(error) error
	// Check refuses what the flags say and cannot work.
	Check func() error
	// About is one line for the help.
	About string
	// Start makes and binds all that can be refused at the start, and gives what Run is
	// then called with.
	Start func(context.Context) (*Plugin, Work, error)
}

// Run is the life of the process. It returns its exit code.
func (c Command) Run(arguments []string) int {
	switch err := Parse(c.Flags, arguments); {
	case errors.Is(err, flag.ErrHelp):
		return c.show(c.usage())
	case err != nil && c.Reword != nil:
		return c.refuse(c.Reword(err))
	case err != nil:
		return c.refuse(err)
	case c.Options.Version:
		return c.show(VersionText(c.program()))
	}
	if err := c.Check(); err != nil {
		return c.refuse(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// The first signal asks for a clean end, a second one ends at once.
	context.AfterFunc(ctx, stop)
	plugin, work, err := c.Start(ctx)
	if err != nil {
		return c.refuse(err)
	}
	switch err := plugin.Run(ctx, work); {
	case errors.Is(err, server.ErrSocket):
		return c.refuse(err) // The registration socket, made last of all.
	case err != nil:
		plugin.Log.Error("the plugin failed", "error", err)
		return ExitFailed
	}
	return 0
}

func (c Command) program() string {
	program, _, _ := strings.Cut(c.Flags.Name(), " ")
	return program
}

// refuse says in one line why the plugin does not start.
func (c Command) refuse(err error) int {
	fmt.Fprintln(os.Stderr, c.program()+": "+OneLine(err.Error()))
	return ExitUnusable
}

// show is for whoever asked, and may have gone by now.
func (c Command) show(text string) int {
	_, _ = os.Stdout.WriteString(text)
	return 0
}

func (c Command) usage() string {
	return c.About + "\n\nUsage: " + c.Flags.Name() + " --node-id NAME [flags]\n\n" + FlagsText(c.Flags) +
		"\nExit codes: 0 after a clean stop, 1 when it failed while running,\n2 when it cannot start until something is changed.\n"
}

// VersionText is what a program says of its build.
func VersionText(program string) string {
	return fmt.Sprintf("%s %s (%s, %s)\n", program, build.Version(), build.Revision(), build.GoVersion())
}
