// Package attributes reads what a volume says about itself, its volumeAttributes, into
// typed values, and refuses what git must never see: it is the one place that knows
// which URLs and refs are harmless on a command line, and which hosts a node may reach.
//
// It must never repair a value: what git would read otherwise than this package is
// refused, with the attribute, the value and what would be right. It never resolves a
// name and never repeats a credential that somebody wrote into a URL.
package attributes
