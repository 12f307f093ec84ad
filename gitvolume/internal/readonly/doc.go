// Package readonly is the read-only volumes of a node: it keeps the trees that pods see at
// what their refs are upstream, at the cost of one loop a repository.
//
// It must never show a volume what the remote did not show its own credential, whatever others
// fetched before, whatever the remote does, and whatever offline says; never have a reader
// miss a file; never start a fetch for what is known already; and never let one remote
// that hangs keep a call, a credential or another repository waiting. It knows neither CSI
// nor Kubernetes.
//
// The words: an attachment is a volume on this node. A checkout is a tree; volumes share it
// that may see the same. A follower is the loop of a repository. A scope is as whom a
// repository is asked: only what it was told of is shown to its volumes.
package readonly
