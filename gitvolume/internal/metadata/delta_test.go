package metadata

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestApply(t *testing.T) {
	private, shared := Entry{Kind: File, Mode: Set(0o600)}, Entry{Kind: File, Mode: Set(0o664)}
	base := Delta{"a": private, "b": private, "c": private}
	for name, row := range map[string]struct {
		theirs, delta, want Delta
	}{
		"theirs stay":                {base, Delta{}, base},
		"a change over theirs":       {base, Delta{"b": shared}, Delta{"a": private, "b": shared, "c": private}},
		"a new one before them":      {Delta{"b": private}, Delta{"a": shared}, Delta{"a": shared, "b": private}},
		"a new one after them":       {Delta{"b": private}, Delta{"c": shared}, Delta{"b": private, "c": shared}},
		"one that is gone":           {base, Delta{"a": {}}, Delta{"b": private, "c": private}},
		"gone, and they had none":    {Delta{}, Delta{"a": {}}, Delta{}},
		"an entry that says nothing": {base, Delta{"a": {Kind: File}}, Delta{"b": private, "c": private}},
		"no record of theirs":        {Delta{}, base, base},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := record(t, row.theirs).Apply(row.delta)
			if want := record(t, row.want); err != nil || !got.Equal(want) {
				t.Errorf("the record is %q, %v, want %q", got.Format(), err, want.Format())
			}
		})
	}
}

func TestApplyRefusesWhatNoRecordHolds(t *testing.T) {
	for name, delta := range map[string]Delta{
		"a path upwards":     {"../a": {Kind: File, Mode: Set(0o600)}},
		"a link with a mode": {"a": {Kind: Link, Mode: Set(0o600)}},
		"a file's type":      {"a": {Kind: File, Mode: Set(0o100600)}},
		"no kind":            {"a": {Mode: Set(0o600)}},
		"a kind beyond":      {"a": {Kind: Link + 1, Owner: Set(1)}},
		"nobody":             {"a": {Kind: File, Owner: Set(noID)}},
	} {
		if r, err := (Record{}).Apply(delta); err == nil {
			t.Errorf("%s: it was taken as %q", name, r.Format())
		}
	}
}

func TestDiffIsWhatApplyNeeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := record(t, deltas().Draw(t, "base"))
		ours, err := base.Apply(deltas().Draw(t, "changes"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := base.Apply(Diff(base, ours))
		if err != nil || !got.Equal(ours) {
			t.Fatalf("base and the difference give %q, %v, want %q", got.Format(), err, ours.Format())
		}
		if rest := Diff(ours, got); len(rest) != 0 {
			t.Fatalf("equal records differ by %v", rest)
		}
	})
}

// TestWriters lets several volumes with paths of their own push their changes in two
// orders, each rebuilding its record on what it finds.
func TestWriters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := record(t, deltas().Draw(t, "base"))
		writers := rapid.IntRange(1, 5).Draw(t, "writers")
		owned := make([]Delta, writers)
		for i := range owned {
			changes := Delta{}
			for path, entry := range deltas().Draw(t, "changes") {
				changes[fmt.Sprintf("%s/of-%d", path, i)] = entry
			}
			for path := range base.All() {
				if int(path[0])%writers == i && path != Root && rapid.Bool().Draw(t, "drop") {
					changes[path] = Entry{}
				}
			}
			ours, err := base.Apply(changes)
			if err != nil {
				t.Fatal(err)
			}
			owned[i] = Diff(base, ours)
		}
		order := make([]int, writers)
		for i := range order {
			order[i] = i
		}
		first, second := base, base
		for _, i := range order {
			first = apply(t, first, owned[i])
		}
		for _, i := range rapid.Permutation(order).Draw(t, "order") {
			second = apply(t, second, owned[i])
		}
		if !first.Equal(second) {
			t.Fatalf("the order matters: %q and %q", first.Format(), second.Format())
		}
		for i, delta := range owned {
			for path, entry := range delta {
				if first.Entry(path) != entry {
					t.Fatalf("writer %d lost %q: %+v instead of %+v", i, path, first.Entry(path), entry)
				}
			}
		}
	})
}

func apply(t *rapid.T, r Record, delta Delta) Record {
	r, err := r.Apply(delta)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// BenchmarkApply puts ten entries over a record in which every file has one.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			all, delta := Delta{}, Delta{}
			for i := range size {
				all[fmt.Sprintf("%s/%07d", strings.Repeat("d", i%40+1), i)] = Entry{Kind: File, Mode: Set(0o600)}
			}
			for i := range 10 {
				delta[fmt.Sprintf("d/new-%d", i)] = Entry{Kind: Empty}
			}
			r := record(b, all)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Apply(delta); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	all := Delta{}
	for i := range 100_000 {
		all[fmt.Sprintf("directory-%03d/file-%05d", i%1000, i)] = Entry{Kind: File, Mode: Set(0o600)}
	}
	text := record(b, all).Format()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
