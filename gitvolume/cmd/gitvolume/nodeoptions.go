package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"liken.sh/csicommon/nodeplugin"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/store"
)

// nodeOptions are what the command line of node says.
type nodeOptions struct {
	nodeplugin.Options

	scanEvery         time.Duration
	demandMinInterval time.Duration
	stopPushTimeout   time.Duration
	fetchTimeout      time.Duration
	trashKeep         time.Duration
	minFree           minFree

	rules     attributes.Rules
	addresses attributes.Addresses
	allowed   credential.Allowed
}

func newNodeFlags(o *nodeOptions) *flag.FlagSet {
	flags := flag.NewFlagSet("gitvolume node", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // what goes wrong is said in one line
	o.Register(flags, nodeplugin.Own{Store: "/var/lib/liken/git", Keeps: "repositories and trees", HTTP: ":9200"})

	o.scanEvery, o.demandMinInterval, o.stopPushTimeout = 5*time.Minute, 10*time.Second, 30*time.Second
	o.fetchTimeout, o.trashKeep = time.Hour, 24*time.Hour
	flags.Var((*span)(&o.scanEvery), "scan-every", "`time` between looks at all of a writeable volume, whatever events say")
	flags.Var((*span)(&o.demandMinInterval), "demand-min-interval", "least `time` between two pulls of a repository that somebody demands")
	flags.Var((*span)(&o.stopPushTimeout), "stop-push-timeout", "`time` that the pushes at the end may take in all; 0s pushes nothing then")
	flags.Var((*span)(&o.fetchTimeout), "fetch-timeout", "`time` that one fetch may take")
	flags.Var((*span)(&o.trashKeep), "trash-keep", "`time` for which the tree of a removed volume can be brought back")
	o.minFree = minFree{free: store.DefaultFree(), text: defaultMinFree}
	flags.Var(&o.minFree, "min-free", "what has to be free on the store's disk for new volumes: a `quantity`, a part of the disk, or the less of both")

	flags.Func("allow-url", "`pattern` [scheme://]host[:port][/path] of URLs that volumes may have, repeatable; none allows all", o.allowURL)
	flags.Func("allow-address", "`address`, or a range of them, that inline volumes may reach although it is local to the node, repeatable", o.allowAddress())
	flags.BoolVar(&o.allowed.Insecure, "allow-insecure", false, "let tokens go over http://, where everyone on the way can read them")
	flags.BoolVar(&o.rules.Local, "allow-local-urls", false, "let URLs name directories of the node: file:// or a path")
	return flags
}

func (o *nodeOptions) allowURL(text string) error {
	pattern, err := attributes.ParsePattern(text)
	if err == nil {
		o.rules.Allow = append(o.rules.Allow, pattern)
	}
	return err
}

// allowAddress reads each value together with those before it.
func (o *nodeOptions) allowAddress() func(text string) error {
	var texts []string
	return func(text string) (err error) {
		texts = append(texts, text)
		o.addresses, err = attributes.ParseAddresses(texts)
		return err
	}
}

func (o *nodeOptions) check() error {
	for _, one := range []struct {
		flag   string
		value  time.Duration
		sample string
	}{
		{"--scan-every", o.scanEvery, "5m"},
		{"--demand-min-interval", o.demandMinInterval, "10s"},
		{"--fetch-timeout", o.fetchTimeout, "1h"},
	} {
		if one.value <= 0 {
			return fmt.Errorf("%s %s is not positive: give a time such as %s", one.flag, one.value, one.sample)
		}
	}
	switch {
	case o.stopPushTimeout < 0:
		return fmt.Errorf("--stop-push-timeout %s is negative: give a time such as 30s, or 0s to push nothing at the end", o.stopPushTimeout)
	case o.trashKeep < 0:
		return fmt.Errorf("--trash-keep %s is negative: give a time such as 24h, or 0s to keep nothing", o.trashKeep)
	}
	return o.Check()
}

// reworded has the errors of flags call them as they are documented.
func reworded(err error) error { return errors.New(twoDashes(err.Error())) }

// defaultMinFree is store.DefaultFree as a person writes it.
const defaultMinFree = "5%,1Gi"

// minFree is how much is to be free, as a flag.
type minFree struct {
	free store.Free
	text string
}

// String is what was written.
func (m *minFree) String() string { return m.text }

// Set reads how much is to be free.
func (m *minFree) Set(text string) error {
	read, err := store.ParseFree(text)
	if err == nil {
		*m = minFree{free: read, text: text}
	}
	return err
}
