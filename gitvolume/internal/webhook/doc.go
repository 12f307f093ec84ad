// Package webhook has volumes pull when their forge says that somebody pushed: it verifies a
// forge's request with a Secret, finds the read-only PersistentVolumes that it is about, and
// annotates them.
//
// It must never tell a sender who did not sign with the right Secret anything: not which
// Secrets, volumes or paths there are, by no status, word or time. It must never mark a
// volume with a Secret of another namespace, never read a Secret that no volume names, never
// list anything for a request, never hold what a sender does not finish, and never have more
// in memory for senders than is bounded here, however many there are and whatever they send.
// It knows no git and no CSI.
package webhook
