// Package page compares the reference that users read with what a driver does: its flags
// and its metrics, and reads what it says the driver may ask the API server for.
//
// It must never hold a name of a driver's: what is compared comes from the page and from
// the driver alone.
package page

import (
	"flag"
	"os"
	"regexp"
	"testing"
)

// Read returns the text of a page.
func Read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// CompareFlags wants the page to have a row for each flag, with its default, and no other.
func CompareFlags(t testing.TB, file string, flags *flag.FlagSet) {
	t.Helper()
	documented := make(map[string]string)
	row := regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| (?:`([^`]*)`|none) \\| .+ \\|$")
	for _, match := range row.FindAllStringSubmatch(Read(t, file), -1) {
		documented[match[1]] = match[2]
	}
	flags.VisitAll(func(f *flag.Flag) {
		value, found := documented[f.Name]
		switch {
		case !found:
			t.Errorf("%s: --%s has no row", file, f.Name)
		case value != f.DefValue:
			t.Errorf("%s: --%s has the default %q, the page says %q", file, f.Name, f.DefValue, value)
		}
		delete(documented, f.Name)
	})
	for name := range documented {
		t.Errorf("%s: --%s has a row and is no flag", file, name)
	}
}
