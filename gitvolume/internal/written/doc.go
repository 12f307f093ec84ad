// Package written is one writeable volume as the kubelet has it: staged, published,
// unpublished, unstaged, and found again after a restart. It brings a volume's engine
// together with its way to the remote and with the class that is in force.
//
// It must never forget a tree, never follow one that its record does not name, and never
// keep a credential longer than there is something to push with it. It knows neither
// mounts nor CSI.
package written
