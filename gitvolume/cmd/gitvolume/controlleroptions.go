package main

import (
	"errors"
	"flag"
	"io"
)

// controllerOptions are what the command line of controller says.
type controllerOptions struct {
	endpoint     string // Empty: no CSI.
	http         string // Empty: no HTTP.
	webhook      string // Empty: no webhook.
	kubeconfig   string
	otlpEndpoint string
	logLevel     string
	logFormat    string
	version      bool
}

func newControllerFlags(o *controllerOptions) *flag.FlagSet {
	flags := flag.NewFlagSet("gitvolume controller", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // what goes wrong is said in one line
	flags.StringVar(&o.endpoint, "endpoint", "unix:///csi/csi.sock", "unix `socket` to serve CSI on, for the resizer and the provisioner; empty serves none")
	flags.StringVar(&o.http, "http", ":9200", "`address` of /metrics, /healthz and /readyz; empty serves none")
	flags.StringVar(&o.webhook, "webhook", ":8080", "`address` on which forges tell of pushes; empty serves no forge, and asks no API server")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` to find the API server with; empty means from inside its cluster")
	flags.StringVar(&o.otlpEndpoint, "otlp-endpoint", "", "also push metrics to this OTLP gRPC `address` (host:port or URL)")
	flags.StringVar(&o.logLevel, "log-level", "info", "`level` debug, info, warn or error")
	flags.StringVar(&o.logFormat, "log-format", "text", "`format` text or json")
	flags.BoolVar(&o.version, "version", false, "print the version and exit")
	return flags
}

// check refuses what cannot work, without opening anything.
func (o *controllerOptions) check() error {
	if o.webhook == "" && o.endpoint == "" {
		return errors.New("--endpoint and --webhook are both empty, so there is nothing to serve: leave one of them out")
	}
	if o.webhook == "" && o.kubeconfig != "" {
		return errors.New("--kubeconfig is for the webhook, which an empty --webhook leaves out: give one of them up")
	}
	return nil
}
