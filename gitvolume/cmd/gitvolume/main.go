// Command gitvolume keeps the history of directories on git remotes.
//
// It only reads flags and wires the packages together, and must never decide
// anything about a volume itself.
package main

import (
	"fmt"
	"os"

	"liken.sh/csicommon/nodeplugin"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/remote"
)

// helperWord is the command that git and ssh run to ask for a credential or a host key.
const helperWord = "credential-helper"

// The exit codes. A start that cannot work until somebody changes something ends
// with exitUnusable, so that it can be told from a failure under way.
const (
	exitFailed   = nodeplugin.ExitFailed
	exitUnusable = nodeplugin.ExitUnusable
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
		return unusable(fmt.Errorf("what is to be done is missing: gitvolume watch DIR --url URL, gitvolume node or gitvolume controller; gitvolume --help tells more"))
	}
	switch word, rest := arguments[0], arguments[1:]; word {
	case helperWord:
		return credential.Helper(rest, os.Stdin, os.Stdout)
	case "controller":
		return runController(rest)
	case "node":
		return runNode(rest)
	case "uninstall-check":
		return runUninstallCheck(rest)
	case "watch":
		return runWatch(rest)
	case "help", "-h", "-help", "--help":
		fmt.Print(usageText)
		return 0
	case "version", "-version", "--version":
		fmt.Print(nodeplugin.VersionText("gitvolume"))
		return 0
	default:
		return unusable(fmt.Errorf("%q is no command of gitvolume: there are controller, node, uninstall-check and watch; gitvolume --help tells more", word))
	}
}

const usageText = `gitvolume keeps the history of directories on git remotes.

Usage: gitvolume COMMAND

  node --node-id NAME [flags]
        serve the volumes of a node of a Kubernetes cluster
        (gitvolume node --help lists the flags)
  controller [flags]
        check the classes of volumes of a Kubernetes cluster, and hear of pushes
        (gitvolume controller --help lists the flags)
  watch DIR --url URL [flags]
        commit and push what is written into a directory
        (gitvolume watch --help lists the flags)
  uninstall-check [flags]
        look for volumes that an uninstallation from a cluster would leave behind
  --version
        print the version and exit
`

// unusable says in one line why nothing is begun.
func unusable(err error) int {
	fmt.Fprintln(os.Stderr, "gitvolume: "+nodeplugin.OneLine(err.Error()))
	return exitUnusable
}
