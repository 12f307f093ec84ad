// Package writeable is one writeable volume: a plain directory that an application
// writes, whose history is kept and is on a remote. It decides when to commit, push,
// rebase, go to the side branch and come back.
//
// One goroutine owns all of a volume's state. It learns what happens by what it is told
// (events of the tree, the class, a credential, the end) and by the clock, does one thing
// after the other, and writes down where it is before it relies on it: see Position. So
// the process may end at any instant, and the next one goes on.
//
// It must never lose what an application wrote, never write it over, never commit or push
// it twice, never take anybody's commits out of a branch, and never change the tree while
// a pod has it, but for a push that was rejected because the ref or the metadata moved and
// for the heal. The record of modes, owners and empty directories that it goes by must never
// have what the tree was not given: a look at the tree would find that removed.
// It knows neither CSI nor Kubernetes.
package writeable
