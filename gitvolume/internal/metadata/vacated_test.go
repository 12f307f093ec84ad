package metadata

import (
	"slices"
	"testing"
)

func TestVacated(t *testing.T) {
	empty := Entry{Kind: Empty}
	closed := Entry{Kind: Empty, Mode: Set(0o700)}
	for name, row := range map[string]struct {
		before, after Delta
		want          []string
	}{
		"none was there":                   {Delta{}, Delta{"e": empty}, nil},
		"it stays, with another mode":      {Delta{"e": empty}, Delta{"e": closed}, nil},
		"it went":                          {Delta{"e": empty, "f": empty}, Delta{"f": empty}, []string{"e"}},
		"one in another that stays":        {Delta{"d/e": empty}, Delta{"d": empty}, []string{"d/e"}},
		"one beside another":               {Delta{"d/e": empty, "d/f": empty}, Delta{"d/f": empty}, []string{"d/e"}},
		"with what was only for it":        {Delta{"d/e/f": empty}, Delta{}, []string{"d/e/f", "d/e", "d"}},
		"one in it came":                   {Delta{"d": empty}, Delta{"d/e": empty}, nil},
		"those in it before what holds it": {Delta{"d/a": empty, "d-e": empty}, Delta{}, []string{"d/a", "d-e", "d"}},
		"what is no empty directory": {
			Delta{"d": {Kind: Directory, Mode: Set(0o700)}, "f": {Kind: File, Mode: Set(0o600)}}, Delta{}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Vacated(record(t, row.before), record(t, row.after)); !slices.Equal(got, row.want) {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}
