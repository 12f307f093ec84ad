// Package credential holds what a volume's Secret grants, in memory alone, and lends it
// to the git and ssh processes that need it: an SSH key through an agent that only
// signs, a token through git's credential helper, which answers for one server only.
// It also decides which host keys are trusted.
//
// It must never write a private key or a token to a disk, a command line, an
// environment, a log or an error, whatever prints a Credential; and it must never give
// one to a server that the volume's URL does not name.
package credential
