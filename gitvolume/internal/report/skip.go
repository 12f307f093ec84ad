package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"liken.sh/csicommon/event"
	"liken.sh/csicommon/quote"
)

const (
	// pathLength bounds a path in a message, in bytes.
	pathLength = 120
	// namedPaths is how many paths a message names: with their reasons they fit an Event.
	namedPaths = 5
	// toldPaths bounds how many paths are remembered as told. Of more, those that come
	// later in the order of their names are counted only.
	toldPaths = 10_000
)

// Skip is a path that is left out of commits or of a checkout, and why in the driver's
// words.
type Skip struct {
	Path string
	Why  string
}

// skipped is what is left out of a volume.
type skipped struct {
	count int
	told  map[Skip]struct{}
}

// Skipped says what is left out now, all of it, in any order. Each path is told once for
// each reason, together with others that are new, and again after it was not left out for
// a while. The slice stays the caller's.
func (v *Volume) Skipped(all []Skip) {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b Skip) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Why, b.Why))
	})
	sorted = slices.Compact(sorted)

	v.mu.Lock()
	defer v.mu.Unlock()
	news := v.skipped.follow(sorted)
	if len(news) > 0 {
		message := event.Message(leftOut(news))
		v.log().Warn("paths are left out", "message", message, "paths", len(news))
		v.reports.post(event.Warning, natureOf(fileSkipped).event, message, v.about()...)
	}
	if len(sorted) > 0 {
		v.faults[fileSkipped] = lasting{message: event.Message(leftOut(sorted))}
	} else {
		v.clear(fileSkipped)
	}
	v.judge()
}

// LeftOut is how many paths are left out now.
func (v *Volume) LeftOut() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.skipped.count
}

// follow takes what is left out now and gives what of it was not told.
func (s *skipped) follow(sorted []Skip) (news []Skip) {
	told := make(map[Skip]struct{}, min(len(sorted), toldPaths))
	for _, skip := range sorted[:min(len(sorted), toldPaths)] {
		if _, known := s.told[skip]; !known {
			news = append(news, skip)
		}
		told[skip] = struct{}{}
	}
	s.count, s.told = len(sorted), told
	return news
}

// leftOut says the same for the same paths.
func leftOut(sorted []Skip) string {
	if len(sorted) == 1 {
		return fmt.Sprintf("%s is left out: %s", quote.Words(sorted[0].Path, pathLength), sorted[0].Why)
	}
	var named []string
	for _, skip := range sorted[:min(len(sorted), namedPaths)] {
		named = append(named, fmt.Sprintf("%s (%s)", quote.Words(skip.Path, pathLength), skip.Why))
	}
	text := fmt.Sprintf("%d paths are left out: %s", len(sorted), strings.Join(named, ", "))
	if more := len(sorted) - len(named); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
