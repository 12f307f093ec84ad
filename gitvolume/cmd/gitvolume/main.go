// Command gitvolume keeps the history of directories on git remotes.
//
// It only reads flags and wires the packages together, and must never decide
// anything about a volume itself.
package main

import (
	"fmt"
	"os"
	"strings"

	"liken.sh/csicommon/build"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/remote"
)

// driver is the name by which classes call the driver that they are for.
const driver = "git.liken.sh"

// helperWord is the command that git and ssh run to ask for a credential or a host key.
const helperWord = "credential-helper"

// The exit codes. A start that cannot work until somebody changes something ends
// with exitUnusable, so that it can be told from a failure under way.
const (
	exitFailed   = 1
	exitUnusable = 2
	// exitSignal is what the number of a signal is added to that ends the process at once.
	exitSignal = 128
)

func main() {
	// git and ssh run this program too.
	remote.Child(os.Args)
	os.Exit(run(os.Args[1:]))
}

func run(arguments []string) int {
	if len(arguments) == 0 {
		return unusable(fmt.Errorf("what is to be done is missing: gitvolume watch DIR --url URL; gitvolume --help tells more"))
	}
	switch word, rest := arguments[0], arguments[1:]; word {
	case helperWord:
		return credential.Helper(rest, os.Stdin, os.Stdout)
	case "watch":
		return runWatch(rest)
	case "help", "-h", "-help", "--help":
		fmt.Print(usageText)
		return 0
	case "version", "-version", "--version":
		fmt.Printf("gitvolume %s (%s, %s)\n", build.Version(), build.Revision(), build.GoVersion())
		return 0
	default:
		return unusable(fmt.Errorf("%q is no command of gitvolume: there is watch; gitvolume --help tells more", word))
	}
}

const usageText = `gitvolume keeps the history of directories on git remotes.

Usage: gitvolume COMMAND

  watch DIR --url URL [flags]
        commit and push what is written into a directory
        (gitvolume watch --help lists the flags)
  --version
        print the version and exit
`

// unusable says in one line why nothing is begun.
func unusable(err error) int {
	fmt.Fprintln(os.Stderr, "gitvolume: "+oneLine(err.Error()))
	return exitUnusable
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
