package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"liken.sh/csicommon/nodeplugin"
	"liken.sh/gitvolume/internal/attributes"
)

// options are what the command line of watch says.
type options struct {
	dir             string
	url             string
	ref             string
	class           string
	sshKey          string
	knownHosts      string
	tokenFile       string
	ca              string
	store           string
	scanEvery       time.Duration
	stopPushTimeout time.Duration
	allowLocalURLs  bool
	allowInsecure   bool
	logLevel        string
}

func newFlags(o *options) *flag.FlagSet {
	flags := flag.NewFlagSet("gitvolume watch", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // what goes wrong is said in one line
	flags.StringVar(&o.url, "url", "", "`address` of the repository, required: https://, ssh:// or user@host:path")
	flags.StringVar(&o.ref, "ref", "main", "`branch` to follow")
	flags.StringVar(&o.class, "class", "", "`file` with the VolumeAttributesClass that says when and what is committed; without it nothing is")
	flags.StringVar(&o.sshKey, "ssh-key", "", "`file` with the private SSH key, without a passphrase")
	flags.StringVar(&o.knownHosts, "known-hosts", "", "`file` with the SSH host keys to trust; without it the first one seen is trusted from then on")
	flags.StringVar(&o.tokenFile, "token-file", "", "`file` with the token, for https://")
	flags.StringVar(&o.ca, "ca", "", "`file` with certificates (PEM) to trust beside the system's, for https://")
	flags.StringVar(&o.store, "store", "", "`directory` for the history, one for each DIR; empty means one below $XDG_STATE_HOME or ~/.local/state")
	o.scanEvery, o.stopPushTimeout = 5*time.Minute, 30*time.Second
	flags.Var((*span)(&o.scanEvery), "scan-every", "`time` between looks at all of the directory, whatever events say")
	flags.Var((*span)(&o.stopPushTimeout), "stop-push-timeout", "`time` that the push at the end may take; 0s pushes nothing then")
	flags.BoolVar(&o.allowLocalURLs, "allow-local-urls", false, "let --url name a directory of this machine: file:// or a path")
	flags.BoolVar(&o.allowInsecure, "allow-insecure", false, "let a token go over http://, where everyone on the way can read it")
	flags.StringVar(&o.logLevel, "log-level", "warn", "`level` of the log on standard error: debug, info, warn or error")
	return flags
}

// span is a duration as a flag, whose error tells how one is written.
type span time.Duration

// String is as that of a duration.
func (s *span) String() string { return time.Duration(*s).String() }

// Set reads a duration.
func (s *span) Set(text string) error {
	read, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("it has no unit or is none: give a time such as 5m or 30s")
	}
	*s = span(read)
	return nil
}

// twoDashes has the flag package's errors call a flag as it is documented.
func twoDashes(text string) string {
	return regexp.MustCompile(`(: |for |for flag )-([a-z])`).ReplaceAllString(text, "$1--$2")
}

// parseOptions reads the command line after "watch"; its errors name the flag and what
// would be right. DIR may stand before, between or after the flags.
func parseOptions(arguments []string) (options, error) {
	var o options
	flags := newFlags(&o)
	var dirs []string
	for {
		if err := flags.Parse(arguments); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return o, err
			}
			return o, fmt.Errorf("%s; gitvolume watch --help lists the flags", twoDashes(err.Error()))
		}
		if flags.NArg() == 0 {
			break
		}
		dirs = append(dirs, flags.Arg(0))
		arguments = flags.Args()[1:]
	}
	switch {
	case len(dirs) == 0:
		return o, errors.New("which directory? gitvolume watch DIR --url URL")
	case len(dirs) == 2 && o.url == "" && isAddress(dirs[1]) && !isAddress(dirs[0]):
		return o, fmt.Errorf("%q is an address, and no directory: write --url before it", attributes.WithoutSecrets(dirs[1]))
	case len(dirs) > 1:
		return o, fmt.Errorf("there are two directories, %q and %q: watch each with a gitvolume of its own", dirs[0], dirs[1])
	}
	o.dir = dirs[0]
	return o, o.check()
}

// isAddress tells what nobody calls a directory.
func isAddress(text string) bool {
	_, err := attributes.ParseURL(text)
	return strings.Contains(text, "://") || strings.Contains(text, "@") && err == nil
}

func (o *options) check() error {
	switch {
	case o.dir == "":
		return errors.New("the directory's name is empty: name one that is there, or is to be made")
	case strings.HasPrefix(o.dir, "~"):
		return fmt.Errorf("the shell has left the ~ of %q as it is: write $HOME, or take the quotes away", o.dir)
	case o.url == "":
		return errors.New("--url is missing: give the address of a repository, as ssh://git@git.example.org/me/notes.git")
	case o.ref == "":
		return errors.New("--ref is empty: name a branch, or leave it out for main")
	case o.sshKey != "" && o.tokenFile != "":
		return errors.New("--ssh-key and --token-file exclude each other: ssh takes a key, https a token")
	case o.knownHosts != "" && o.sshKey == "":
		return errors.New("--known-hosts is for ssh and goes with --ssh-key, which is missing")
	case o.ca != "" && o.tokenFile == "":
		return errors.New("--ca is for https and goes with --token-file, which is missing")
	case o.scanEvery <= 0:
		return fmt.Errorf("--scan-every %s is not positive: give a time such as 5m", o.scanEvery)
	case o.stopPushTimeout < 0:
		return fmt.Errorf("--stop-push-timeout %s is negative: give a time such as 30s, or 0s to push nothing at the end", o.stopPushTimeout)
	}
	return nil
}

func watchUsage() string {
	var text strings.Builder
	text.WriteString("gitvolume watch commits and pushes what is written into a directory.\n\n" +
		"Usage: gitvolume watch DIR --url URL [flags]\n\n")
	text.WriteString(nodeplugin.FlagsText(newFlags(&options{})))
	text.WriteString("\nSignals: SIGINT and SIGTERM commit, push and end; a second one ends at once.\n" +
		"SIGHUP reads the class again; without --class it is like SIGTERM, except under nohup.\n" +
		"\nExit codes: 0 when nothing is left to commit or push, 1 when something is or it\n" +
		"failed, 2 when it cannot start until something is changed, 130 or 143 when a second\n" +
		"SIGINT or SIGTERM ended it at once.\n")
	return text.String()
}
