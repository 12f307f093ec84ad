// Command pernode is the node plugin of the per-node driver: it gives each pod
// that uses a volume the directory this node has for it.
//
// It only reads flags and wires the packages together, and must never decide
// anything about a volume itself.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"liken.sh/csicommon/nodeplugin"
)

// collectAt is the share of the live heap, in percent, that may be garbage before
// it is collected. The heap is some 2 MB; the runtime's default would let it grow
// to 4 before it looks the first time, on every node of a cluster.
const collectAt = 50

func main() {
	debug.SetGCPercent(collectAt)
	os.Exit(run(os.Args[1:]))
}

func run(arguments []string) int {
	var o options
	return nodeplugin.Command{
		Flags: newFlags(&o), Options: &o.Options, Check: o.check,
		About: "pernode serves CSI volumes that are a directory on each node.",
		Start: func(ctx context.Context) (*nodeplugin.Plugin, nodeplugin.Work, error) { return start(ctx, o) },
	}.Run(arguments)
}
