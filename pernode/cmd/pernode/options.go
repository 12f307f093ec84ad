package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// options are the plugin's flags.
type options struct {
	endpoint     string
	nodeID       string
	store        string
	kubeletDir   string
	http         string
	sweepEvery   time.Duration
	requireMount bool
	adoptStore   bool
	standalone   bool
	kubeconfig   string
	otlpEndpoint string
	logLevel     string
	logFormat    string
	version      bool
}

func newFlags(o *options) *flag.FlagSet {
	flags := flag.NewFlagSet("pernode", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // what goes wrong is said in one line
	flags.StringVar(&o.endpoint, "endpoint", "unix:///csi/csi.sock", "unix `socket` to serve CSI on")
	flags.StringVar(&o.nodeID, "node-id", "", "`name` of this node, required")
	flags.StringVar(&o.store, "store", "/var/lib/liken/per-node", "`directory` the copies are kept in")
	flags.StringVar(&o.kubeletDir, "kubelet-dir", "/var/lib/kubelet", "the kubelet's root `directory`")
	flags.StringVar(&o.http, "http", ":9808", "`address` of /metrics, /healthz and /readyz; empty serves none")
	flags.DurationVar(&o.sweepEvery, "sweep-every", 10*time.Minute, "`time` between sweeps for copies whose PersistentVolume is gone")
	flags.BoolVar(&o.requireMount, "require-mount", false, "refuse to run when the store is not a mount point")
	flags.BoolVar(&o.adoptStore, "adopt-store", false, "take over a store that belongs to another cluster")
	flags.BoolVar(&o.standalone, "standalone", false, "run without an API server: Events go to the log, nothing is removed")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` to find the API server with; empty means from inside its cluster")
	flags.StringVar(&o.otlpEndpoint, "otlp-endpoint", "", "also push metrics to this OTLP gRPC `address` (host:port or URL)")
	flags.StringVar(&o.logLevel, "log-level", "info", "`level` debug, info, warn or error")
	flags.StringVar(&o.logFormat, "log-format", "text", "`format` text or json")
	flags.BoolVar(&o.version, "version", false, "print the version and exit")
	return flags
}

// parseOptions reads the flags; its errors name the flag and what would be right.
func parseOptions(arguments []string) (options, error) {
	var o options
	flags := newFlags(&o)
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, fmt.Errorf("%w; pernode --help lists the flags", err)
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: pernode takes flags only, pernode --help lists them", flags.Arg(0))
	}
	if o.version {
		return o, nil
	}
	return o, o.check()
}

func (o *options) check() error {
	switch {
	case o.nodeID == "":
		return errors.New("--node-id is missing: give the node's name, as in the Kubernetes Node object")
	case o.sweepEvery <= 0:
		return fmt.Errorf("--sweep-every %s is not positive: give a time such as 10m", o.sweepEvery)
	case !filepath.IsAbs(o.store):
		return fmt.Errorf("--store %q is not absolute: give the directory's whole path", o.store)
	case o.standalone && o.kubeconfig != "":
		return errors.New("--standalone and --kubeconfig exclude each other: standalone asks no API server")
	case o.standalone && o.adoptStore:
		return errors.New("--standalone and --adopt-store exclude each other: standalone belongs to no cluster")
	}
	return o.checkKubeletDir()
}

// checkKubeletDir refuses a directory that is not there: a plugin that waits for
// a kubelet at the wrong place would look like one that works.
func (o *options) checkKubeletDir() error {
	if !filepath.IsAbs(o.kubeletDir) {
		return fmt.Errorf("--kubelet-dir %q is not absolute: give the kubelet's root directory as on the host", o.kubeletDir)
	}
	info, err := os.Stat(o.kubeletDir)
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		return fmt.Errorf("--kubelet-dir %q cannot be reached: %w; give the kubelet's root directory", o.kubeletDir, err)
	}
	return nil
}

func usageText() string {
	var text strings.Builder
	text.WriteString("pernode serves CSI volumes that are a directory on each node.\n\nUsage: pernode --node-id NAME [flags]\n\n")
	newFlags(&options{}).VisitAll(func(f *flag.Flag) {
		value, meaning := flag.UnquoteUsage(f)
		fmt.Fprintf(&text, "  --%s %s\n        %s", f.Name, value, meaning)
		if f.DefValue != "" && f.DefValue != "false" {
			fmt.Fprintf(&text, " (default %s)", f.DefValue)
		}
		text.WriteString("\n")
	})
	text.WriteString("\nExit codes: 0 after a clean stop, 1 when it failed while running,\n2 when it cannot start until something is changed.\n")
	return text.String()
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
