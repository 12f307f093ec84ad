package mount

import (
	"errors"
	"strings"
	"testing"
)

func TestParseOptions(t *testing.T) {
	for name, row := range map[string]struct {
		flags []string
		want  Options
		named string // what a refusal must quote
	}{
		"none":                            {},
		"every accepted one":              {flags: []string{"ro", "noexec", "nosuid", "nodev", "noatime"}, want: Options{ReadOnly: true, NoExec: true, NoAtime: true}},
		"those that are on anyway":        {flags: []string{"nosuid", "nodev"}},
		"twice":                           {flags: []string{"ro", "ro"}, want: Options{ReadOnly: true}},
		"suid would undo nosuid":          {flags: []string{"suid"}, named: `"suid"`},
		"rw would undo ro":                {flags: []string{"ro", "rw"}, named: `"rw"`},
		"two in one":                      {flags: []string{"ro,noexec"}, named: `"ro,noexec"`},
		"capitals":                        {flags: []string{"RO"}, named: `"RO"`},
		"empty":                           {flags: []string{""}, named: `""`},
		"a line break for the log":        {flags: []string{"ro\nlevel=ERROR"}, named: `"ro\nlevel=ERROR"`},
		"an option of another filesystem": {flags: []string{"noatime", "vers=4.1"}, named: `"vers=4.1"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseOptions(row.flags)
			if row.named == "" {
				if err != nil || got != row.want {
					t.Fatalf("got %+v, %v, want %+v", got, err, row.want)
				}
				return
			}
			if !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), row.named) ||
				!strings.Contains(err.Error(), "ro, noexec, nosuid, nodev, noatime") {
				t.Fatalf("error %v, want ErrOption naming %s and what is accepted", err, row.named)
			}
			if got != (Options{}) {
				t.Fatalf("options %+v beside an error", got)
			}
		})
	}
}
