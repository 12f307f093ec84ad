// Package remote is what goes over the wire: it lists, fetches and pushes refs with
// the git command, and has git tidy the store. Each run is confined, bounded in time
// and memory, and leaves no process behind; every TCP connection is made by the driver
// itself, so that what became of it is known as a fact and not read from prose.
//
// It must never run what a repository brings, overwrite a remote branch, let git ask
// anybody, or decide anything on the words that git or a server print: those are for
// people.
package remote
