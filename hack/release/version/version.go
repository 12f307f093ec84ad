// Package version holds the rules for a driver's versions. It must never ask git or
// the disk: who calls it knows which versions there are.
package version

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// First is what a driver's first release is called where nobody says otherwise.
const First = "v0.1.0"

// Step is how much a release changes.
type Step int

// The steps of semantic versioning that follow from what changed. A major version is
// a person's decision.
const (
	Patch Step = iota
	Minor
)

// Valid refuses what is no whole version: want vX.Y.Z, since a tag is made of it, and an
// image and a chart are called by it.
func Valid(version string) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version || semver.Prerelease(version) != "" {
		return fmt.Errorf("%q is no version: want vX.Y.Z, such as v1.2.3", version)
	}
	return nil
}

// Latest is the greatest of the versions, empty where there is none. What is no version
// is passed over.
func Latest(versions []string) string {
	valid := slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return Valid(v) != nil })
	if len(valid) == 0 {
		return ""
	}
	return slices.MaxFunc(valid, semver.Compare)
}

// After refuses a version that does not come after the last one, which is empty before
// the first release.
func After(version, last string) error {
	if err := Valid(version); err != nil {
		return err
	}
	if last != "" && semver.Compare(version, last) <= 0 {
		return fmt.Errorf("%s does not come after %s, the last release: want a greater one, such as %s", version, last, Next(last, Patch))
	}
	return nil
}

// Next is the version that the step leads to from the last one, First where there is
// none.
func Next(last string, step Step) string {
	if last == "" {
		return First
	}
	parts := strings.Split(strings.TrimPrefix(last, "v"), ".")
	var numbers [3]int
	for i := range numbers {
		// Valid said that these are numbers.
		numbers[i], _ = strconv.Atoi(parts[i])
	}
	if step == Minor {
		return fmt.Sprintf("v%d.%d.0", numbers[0], numbers[1]+1)
	}
	return fmt.Sprintf("v%d.%d.%d", numbers[0], numbers[1], numbers[2]+1)
}
