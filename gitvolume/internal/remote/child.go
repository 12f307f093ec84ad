package remote

import (
	"fmt"
	"os"
	"path/filepath"
)

// The roles that the driver's program plays when it is run again, known by the name
// that it was run under: git and ssh can be given a program's path, but for some of
// their settings no arguments with it.
const (
	roleGit  = "liken-git"     // confines itself and becomes git
	roleSSH  = "liken-git-ssh" // runs ssh and reports how it ended
	roleDial = "liken-git-dial"
	roleAsk  = "liken-git-ask"
)

// Child plays a role of the program's children when args, which are os.Args, say that
// it was run for one. Then it does not return. The program's main calls it before
// anything else, and so does TestMain in tests.
func Child(args []string) {
	if len(args) == 0 {
		return
	}
	var status int
	var err error
	switch filepath.Base(args[0]) {
	case roleGit:
		status, err = 128, confine(args[1:]) // It returns only when it failed.
	case roleSSH:
		status, err = runSSH(args[1:])
	case roleDial:
		err = dialForChild(args[1:])
	case roleAsk:
		// git has no answer from any helper: the remote wants a credential, and the run
		// has none to give.
		status, err = 1, report(askedMessage)
	default:
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(args[0]), err)
		status = max(status, 1)
	}
	os.Exit(status)
}
