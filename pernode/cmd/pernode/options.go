package main

import (
	"flag"
	"fmt"
	"io"
	"time"

	"liken.sh/csicommon/nodeplugin"
)

// options are the plugin's flags.
type options struct {
	nodeplugin.Options
	sweepEvery time.Duration
}

func newFlags(o *options) *flag.FlagSet {
	flags := flag.NewFlagSet("pernode", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // what goes wrong is said in one line
	o.Register(flags, nodeplugin.Own{Store: "/var/lib/liken/per-node", Keeps: "copies", HTTP: ":9808"})
	flags.DurationVar(&o.sweepEvery, "sweep-every", 10*time.Minute, "`time` between sweeps for copies whose PersistentVolume is gone")
	return flags
}

func (o *options) check() error {
	if o.sweepEvery <= 0 {
		return fmt.Errorf("--sweep-every %s is not positive: give a time such as 10m", o.sweepEvery)
	}
	return o.Check()
}
