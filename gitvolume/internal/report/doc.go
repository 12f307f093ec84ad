// Package report says what becomes of a volume: in Events on its pods and its claim, in
// metrics, in the verdict of its health and in the log. All are made from one state, so
// that none of them says what another denies.
//
// It is the only way to say anything about a volume. It must never have who reports wait
// for an API server or a disk, never decide what is done about a fault, and never keep a
// series of a volume that is closed.
package report
