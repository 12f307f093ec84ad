package nodeplugin

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// Options are the flags that every plugin has.
type Options struct {
	Endpoint     string
	NodeID       string
	Store        string
	KubeletDir   string
	HTTP         string // Empty: no HTTP.
	RequireMount bool
	AdoptStore   bool
	Standalone   bool
	Kubeconfig   string
	OTLPEndpoint string
	LogLevel     string
	LogFormat    string
	Version      bool
}

// Own is in what a plugin's common flags differ from another's.
type Own struct {
	Store string // The default of --store.
	Keeps string // What is kept there, before "are kept in".
	HTTP  string // The default of --http.
}

// Register adds the flags to a plugin's own.
func (o *Options) Register(flags *flag.FlagSet, own Own) {
	flags.StringVar(&o.Endpoint, "endpoint", "unix:///csi/csi.sock", "unix `socket` to serve CSI on")
	flags.StringVar(&o.NodeID, "node-id", "", "`name` of this node, required")
	flags.StringVar(&o.Store, "store", own.Store, "`directory` the "+own.Keeps+" are kept in")
	flags.StringVar(&o.KubeletDir, "kubelet-dir", "/var/lib/kubelet", "the kubelet's root `directory`")
	flags.StringVar(&o.HTTP, "http", own.HTTP, "`address` of /metrics, /healthz and /readyz; empty serves none")
	flags.BoolVar(&o.RequireMount, "require-mount", false, "refuse to run when the store is not a mount point")
	flags.BoolVar(&o.AdoptStore, "adopt-store", false, "take over a store that belongs to another cluster")
	flags.BoolVar(&o.Standalone, "standalone", false, "run without an API server: Events go to the log, nothing is removed")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "`file` to find the API server with; empty means from inside its cluster")
	flags.StringVar(&o.OTLPEndpoint, "otlp-endpoint", "", "also push metrics to this OTLP gRPC `address` (host:port or URL)")
	flags.StringVar(&o.LogLevel, "log-level", "info", "`level` debug, info, warn or error")
	flags.StringVar(&o.LogFormat, "log-format", "text", "`format` text or json")
	flags.BoolVar(&o.Version, "version", false, "print the version and exit")
}

// Check refuses what cannot work, without opening anything; its errors name the flag and
// what would be right.
func (o *Options) Check() error {
	switch {
	case o.NodeID == "":
		return errors.New("--node-id is missing: give the node's name, as in the Kubernetes Node object")
	case !filepath.IsAbs(o.Store):
		return fmt.Errorf("--store %q is not absolute: give the directory's whole path", o.Store)
	case o.Standalone && o.Kubeconfig != "":
		return errors.New("--standalone and --kubeconfig exclude each other: standalone asks no API server")
	case o.Standalone && o.AdoptStore:
		return errors.New("--standalone and --adopt-store exclude each other: standalone belongs to no cluster")
	}
	return o.checkKubeletDir()
}

// checkKubeletDir refuses a directory that is not there: a plugin that waits for
// a kubelet at the wrong place would look like one that works.
func (o *Options) checkKubeletDir() error {
	if !filepath.IsAbs(o.KubeletDir) {
		return fmt.Errorf("--kubelet-dir %q is not absolute: give the kubelet's root directory as on the host", o.KubeletDir)
	}
	info, err := os.Stat(o.KubeletDir)
	if err == nil && !info.IsDir() {
		err = errors.New("not a directory")
	}
	if err != nil {
		return fmt.Errorf("--kubelet-dir %q cannot be reached: %w; give the kubelet's root directory", o.KubeletDir, err)
	}
	return nil
}
