package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"liken.sh/csicommon/apiclient"
	"liken.sh/csicommon/nodeplugin"
	"liken.sh/csicommon/persistentvolume"
	"liken.sh/gitvolume/internal/driver"
)

// uninstallPatience bounds the read of a cluster.
const uninstallPatience = time.Minute

// runUninstallCheck is the command uninstall-check: it fails while there are volumes that
// nobody could let go when the controller is gone.
func runUninstallCheck(arguments []string) int {
	var kubeconfig string
	flags := newUninstallFlags(&kubeconfig)
	switch err := nodeplugin.Parse(flags, arguments); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print("gitvolume uninstall-check looks for volumes that an uninstallation would leave behind.\n\n" +
			"Usage: gitvolume uninstall-check [flags]\n\n" + nodeplugin.FlagsText(flags) +
			"\nExit codes: 0 when there are none, 1 when there are some or the cluster cannot\nbe read, 2 for wrong flags.\n")
		return 0
	case err != nil:
		return unusable(reworded(err))
	}
	client, err := apiclient.New(kubeconfig)
	if err != nil {
		return unusable(fmt.Errorf("find the API server (--kubeconfig names a file): %w", err))
	}
	ctx, cancel := context.WithTimeout(context.Background(), uninstallPatience)
	defer cancel()
	view := persistentvolume.New(persistentvolume.Config{Client: client, Log: slog.New(slog.DiscardHandler)})
	volumes, err := view.List(ctx, driver.Name)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gitvolume: "+nodeplugin.OneLine(err.Error()))
		return exitFailed
	}
	left := leftBehind(volumes)
	if len(left) == 0 {
		fmt.Printf("no volume of %s with the policy Delete is bound\n", driver.Name)
		return 0
	}
	fmt.Printf("%d volumes of %s with the policy Delete are bound, and could not be deleted without its controller:\n\n%s\n"+
		"Delete their claims and wait until the volumes are gone, or set the policy of each to\n"+
		"Retain, and try again. helm uninstall --no-hooks does not look.\n", len(left), driver.Name, strings.Join(left, ""))
	return exitFailed
}

func newUninstallFlags(kubeconfig *string) *flag.FlagSet {
	flags := flag.NewFlagSet("gitvolume uninstall-check", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // what goes wrong is said in one line
	flags.StringVar(kubeconfig, "kubeconfig", "", "`file` to find the API server with; empty means from inside its cluster")
	return flags
}

// leftBehind names the volumes that the provisioner has put its finalizer on, each in a
// line: those that are bound, or were.
func leftBehind(volumes []persistentvolume.Volume) []string {
	var left []string
	for _, v := range volumes {
		if v.ReclaimPolicy == "Delete" && v.ClaimUID != "" {
			left = append(left, fmt.Sprintf("  %s, of claim %s/%s\n", v.Name, v.ClaimNamespace, v.ClaimName))
		}
	}
	slices.Sort(left)
	return left
}
