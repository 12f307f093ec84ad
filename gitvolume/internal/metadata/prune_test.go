package metadata

import "testing"

func TestPrune(t *testing.T) {
	mode := func(kind Kind) Entry { return Entry{Kind: kind, Mode: Set(0o700)} }
	for name, row := range map[string]struct {
		tree            map[string]Kind
		entries, remain Delta
	}{
		"what the tree has stays": {
			map[string]Kind{"d": Directory, "d/f": File, "l": Link},
			Delta{"d": mode(Directory), "d/f": mode(File), "l": {Kind: Link, Owner: Set(1)}},
			Delta{"d": mode(Directory), "d/f": mode(File), "l": {Kind: Link, Owner: Set(1)}},
		},
		"a path that is gone": {map[string]Kind{}, Delta{"d": mode(Directory), "d/f": mode(File)}, Delta{}},
		"a file that became a directory": {
			map[string]Kind{"f": Directory, "f/x": File}, Delta{"f": mode(File)}, Delta{},
		},
		"a file that became a link": {map[string]Kind{"f": Link}, Delta{"f": mode(File)}, Delta{}},
		"an empty directory":        {map[string]Kind{}, Delta{"e": {Kind: Empty}}, Delta{"e": {Kind: Empty}}},
		"an empty directory that was filled": {
			map[string]Kind{"e": Directory, "e/f": File}, Delta{"e": {Kind: Empty}}, Delta{},
		},
		"a filled one with a mode": {
			map[string]Kind{"e": Directory, "e/f": File}, Delta{"e": mode(Empty)}, Delta{"e": mode(Directory)},
		},
		"a file in the way of an empty directory": {map[string]Kind{"e": File}, Delta{"e": {Kind: Empty}}, Delta{}},
		"a file above an empty directory":         {map[string]Kind{"e": File}, Delta{"e/x/y": {Kind: Empty}}, Delta{}},
		"a directory of nothing but empty ones":   {map[string]Kind{}, Delta{"d": mode(Directory), "d/x/e": {Kind: Empty}}, Delta{"d": mode(Directory), "d/x/e": {Kind: Empty}}},
		"two writers' empty directories, one in the other": {
			map[string]Kind{}, Delta{"d": mode(Empty), "d/e": {Kind: Empty}}, Delta{"d": mode(Directory), "d/e": {Kind: Empty}},
		},
		"the root": {map[string]Kind{}, Delta{".": mode(Directory)}, Delta{".": mode(Directory)}},
		"a neighbour with the same beginning": {
			map[string]Kind{}, Delta{"d": mode(Directory), "d-e": {Kind: Empty}}, Delta{"d-e": {Kind: Empty}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := record(t, row.entries).Prune(func(path string) Kind { return row.tree[path] })
			if want := record(t, row.remain); !got.Equal(want) {
				t.Errorf("there remains\n%s\nwant\n%s", got.Format(), want.Format())
			}
		})
	}
}
