// Command pernode is the node plugin of the per-node driver: it gives each pod
// that uses a volume the directory this node has for it.
//
// It only reads flags and wires the packages together, and must never decide
// anything about a volume itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"liken.sh/csicommon/build"
	"liken.sh/csicommon/server"
)

// The exit codes. A start that cannot work until somebody changes something ends
// with exitUnusable, so that it can be told from a crash.
const (
	exitFailed   = 1
	exitUnusable = 2
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
	options, err := parseOptions(arguments)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usageText())
		return 0
	case err != nil:
		return unusable(err)
	case options.version:
		fmt.Printf("pernode %s (%s, %s)\n", build.Version(), build.Revision(), build.GoVersion())
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// The first signal asks for a clean end, a second one ends at once.
	context.AfterFunc(ctx, stop)
	plugin, err := newPlugin(ctx, options)
	if err != nil {
		return unusable(err)
	}
	err = plugin.run(ctx)
	switch {
	case errors.Is(err, server.ErrSocket):
		return unusable(err) // the registration socket, made last of all
	case err != nil:
		plugin.log.Error("the plugin failed", "error", err)
		return exitFailed
	}
	return 0
}

// unusable says in one line why the plugin does not start.
func unusable(err error) int {
	fmt.Fprintln(os.Stderr, "pernode: "+oneLine(err.Error()))
	return exitUnusable
}
