package nodeplugin

import (
	"context"
	"flag"
	"fmt"

	"liken.sh/csicommon/build"
)

// Command is a plugin as a person, or a kubelet's container, starts it.
type Command struct {
	// Flags are all of the plugin's, those of Options among them. Flags, Reword, Check and
	// About are those of Process.
	Flags   *flag.FlagSet
	Options *Options
	Reword  func(error) error
	Check   func() error
	About   string
	// Start makes and binds all that can be refused at the start, and gives what Run is
	// then called with.
	Start func(context.Context) (*Plugin, Work, error)
}

// Run is the life of the process. It returns its exit code.
func (c Command) Run(arguments []string) int {
	return Process{
		Flags: c.Flags, Version: &c.Options.Version, Reword: c.Reword, Check: c.Check, About: c.About, Needs: "--node-id NAME ",
		Start: func(ctx context.Context) (Running, error) {
			plugin, work, err := c.Start(ctx)
			if err != nil {
				return Running{}, err
			}
			return Running{Log: plugin.Log, Run: func(ctx context.Context) error { return plugin.Run(ctx, work) }}, nil
		},
	}.Run(arguments)
}

// VersionText is what a program says of its build.
func VersionText(program string) string {
	return fmt.Sprintf("%s %s (%s, %s)\n", program, build.Version(), build.Revision(), build.GoVersion())
}
