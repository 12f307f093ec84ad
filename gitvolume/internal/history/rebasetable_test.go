package history

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/object"
)

// rebasing is a history that forks: what upstream and the pod made of a base, commit by
// commit.
type rebasing struct {
	base          leaves
	upstream, pod []leaves
	// want is the tree that comes of it; nil is a conflict.
	want leaves
	// left is how many commits of the pod are left.
	left int
	// unasked says that git was not to be asked, as no path was changed twice.
	unasked bool
}

// numbers is `seq 20` with some lines replaced.
func numbers(replaced ...string) string {
	var b strings.Builder
	for line := range strings.SplitSeq("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20", " ") {
		for i := 0; i+1 < len(replaced); i += 2 {
			if replaced[i] == line {
				line = replaced[i+1]
			}
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// TestRebase replays what has gone wrong elsewhere, with git's own result beside it.
func TestRebase(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	for name, row := range rebasings() {
		t.Run(name, func(t *testing.T) { checkRebase(t, w, row) })
	}
}

func checkRebase(t *testing.T, w *workshop, row rebasing) {
	t.Helper()
	base := w.commit(t, row.base)
	onto, tip := base, base
	for _, tree := range row.upstream {
		onto = w.commit(t, tree, onto)
	}
	for _, tree := range row.pod {
		tip = w.commit(t, tree, tip)
	}
	git, said := w.reference(t, base, tip, onto)
	w.merges = 0
	got, err := w.repository.Rebase(t.Context(), w.replay(base, tip, onto))
	if row.unasked && w.merges > 0 {
		t.Errorf("git was asked %d times", w.merges)
	}
	if row.want == nil {
		var conflict *Conflict
		if said == "" || !errors.As(err, &conflict) || len(conflict.Paths) == 0 {
			t.Fatalf("the error is %v, want a conflict; git says %q", err, said)
		}
		return
	}
	if err != nil || said != "" {
		t.Fatalf("the error is %v; git says %q", err, said)
	}
	if tree := w.list(t, git); !maps.Equal(tree, row.want) {
		t.Errorf("git makes %v, want %v", tree, row.want)
	}
	if tree := w.list(t, got.Tip); !maps.Equal(tree, row.want) {
		t.Errorf("the tree is %v, want %v", tree, row.want)
	}
	if got.Replayed != row.left || got.Replayed+got.Dropped != len(row.pod) {
		t.Errorf("%d commits are left and %d dropped, want %d left", got.Replayed, got.Dropped, row.left)
	}
	if row.left == 0 && got.Tip != onto {
		t.Errorf("the tip is %s, want upstream's, %s", got.Tip, onto)
	}
}

func rebasings() map[string]rebasing {
	all := map[string]rebasing{}
	maps.Copy(all, agreeing())
	maps.Copy(all, apartOrDeleted())
	maps.Copy(all, conflicting())
	maps.Copy(all, kinds())
	maps.Copy(all, attributed())
	return all
}

// agreeing are histories that git puts together.
func agreeing() map[string]rebasing {
	two := leaves{"a": text("a\n"), "b": text("b\n")}
	return map[string]rebasing{
		"C40 a: renamed to what the pod adds": {
			base:     leaves{"file1": text("foo\n"), "k": text("k")},
			upstream: []leaves{{"file2": text("foo\n"), "k": text("k")}},
			pod:      []leaves{{"file1": text("foo\n"), "file2": text("foo\n"), "k": text("k")}},
			want:     leaves{"file2": text("foo\n"), "k": text("k")},
		},
		"C40 b: renamed upstream, changed by the pod": {
			base: leaves{"a": text(numbers())}, upstream: []leaves{{"c": text(numbers())}},
			pod: []leaves{{"a": text(numbers("10", "ten"))}}, want: leaves{"c": text(numbers("10", "ten"))}, left: 1,
		},
		"C40 c: the same change": {
			base: two, upstream: []leaves{{"a": text("new\n"), "b": text("b\n")}},
			pod: []leaves{{"a": text("new\n"), "b": text("b\n")}}, want: leaves{"a": text("new\n"), "b": text("b\n")}, unasked: true,
		},
		"C40 d: nothing local": {
			base: two, upstream: []leaves{{"a": text("new\n"), "b": text("b\n")}},
			want: leaves{"a": text("new\n"), "b": text("b\n")}, unasked: true,
		},
		"nothing upstream": {base: two, pod: []leaves{{"a": text("new\n")}}, want: leaves{"a": text("new\n")}, left: 1, unasked: true},
		"C40 f: two lines of one file": {
			base: leaves{"a": text(numbers())}, upstream: []leaves{{"a": text(numbers("20", "twenty"))}},
			pod: []leaves{{"a": text(numbers("1", "one"))}}, want: leaves{"a": text(numbers("1", "one", "20", "twenty"))}, left: 1,
		},
		"C40 g: the same text, another mode": {
			base: leaves{"a": text(numbers())}, upstream: []leaves{{"a": text(numbers("1", "one"))}},
			pod: []leaves{{"a": script(numbers("1", "one"))}}, want: leaves{"a": script(numbers("1", "one"))}, left: 1,
		},
		"mode upstream, text by the pod": {
			base: leaves{"a": text(numbers())}, upstream: []leaves{{"a": script(numbers())}},
			pod: []leaves{{"a": text(numbers("1", "one"))}}, want: leaves{"a": script(numbers("1", "one"))}, left: 1,
		},
		"C41 g: the same change of the mode": {
			base: leaves{"a": text("a\n"), "k": text("k")}, upstream: []leaves{{"a": script("a\n"), "k": text("k")}},
			pod: []leaves{{"a": script("a\n"), "k": text("k")}}, want: leaves{"a": script("a\n"), "k": text("k")}, unasked: true,
		},
	}
}

// apartOrDeleted are histories that share no path, but those that both took away.
func apartOrDeleted() map[string]rebasing {
	two := leaves{"a": text("a\n"), "b": text("b\n")}
	return map[string]rebasing{
		"other files": {
			base: two, upstream: []leaves{{"a": text("new\n"), "b": text("b\n"), "u/x": text("u")}},
			pod:  []leaves{{"a": text("a\n"), "p/x": text("p")}, {"a": text("a\n"), "p/x": text("pp")}},
			want: leaves{"a": text("new\n"), "p/x": text("pp"), "u/x": text("u")}, left: 2, unasked: true,
		},
		"both make a directory": {
			base: two, upstream: []leaves{{"a": text("a\n"), "b": text("b\n"), "d/u": text("u"), "d/same": text("s")}},
			pod:  []leaves{{"a": text("a\n"), "b": text("b\n"), "d/p": text("p"), "d/same": text("s")}},
			want: leaves{"a": text("a\n"), "b": text("b\n"), "d/u": text("u"), "d/p": text("p"), "d/same": text("s")}, left: 1, unasked: true,
		},
		"a directory deleted in which the pod makes a file": {
			base: leaves{"d/a": text("a"), "k": text("k")}, upstream: []leaves{{"k": text("k")}},
			pod:  []leaves{{"d/a": text("a"), "d/new": text("new"), "k": text("k")}},
			want: leaves{"d/new": text("new"), "k": text("k")}, left: 1, unasked: true,
		},
		"both delete": {
			base: two, upstream: []leaves{{"b": text("b\n")}}, pod: []leaves{{"b": text("b\n")}}, want: leaves{"b": text("b\n")},
		},
		"both rename alike": {
			base:     leaves{"a": text(numbers()), "k": text("k")},
			upstream: []leaves{{"c": text(numbers("1", "one")), "k": text("k")}},
			pod:      []leaves{{"c": text(numbers("20", "twenty")), "k": text("k")}},
			want:     leaves{"c": text(numbers("1", "one", "20", "twenty")), "k": text("k")}, left: 1,
		},
		"two renamed to one, alike": {
			base:     leaves{"a": text("same\n"), "b": text("same\n")},
			upstream: []leaves{{"b": text("same\n"), "c": text("same\n")}},
			pod:      []leaves{{"a": text("same\n"), "c": text("same\n")}},
			want:     leaves{"c": text("same\n")}, left: 1, unasked: true,
		},
		"a renamed directory does not take new files along": {
			base:     leaves{"d/a": text(numbers()), "d/b": text(numbers("1", "one")), "k": text("k")},
			upstream: []leaves{{"e/a": text(numbers()), "e/b": text(numbers("1", "one")), "k": text("k")}},
			pod:      []leaves{{"d/a": text(numbers()), "d/b": text(numbers("1", "one")), "d/new": text("new"), "k": text("k")}},
			want:     leaves{"e/a": text(numbers()), "e/b": text(numbers("1", "one")), "d/new": text("new"), "k": text("k")}, left: 1, unasked: true,
		},
		"made and reverted upstream comes back": {
			base:     two,
			upstream: []leaves{{"a": text("pod\n"), "b": text("b\n")}, two},
			pod:      []leaves{{"a": text("pod\n"), "b": text("b\n")}},
			want:     leaves{"a": text("pod\n"), "b": text("b\n")}, left: 1, unasked: true,
		},
		"the first of two was taken over": {
			base:     two,
			upstream: []leaves{{"a": text("one\n"), "b": text("b\n")}},
			pod:      []leaves{{"a": text("one\n"), "b": text("b\n")}, {"a": text("one\n"), "b": text("two\n")}},
			want:     leaves{"a": text("one\n"), "b": text("two\n")}, left: 1, unasked: true,
		},
		"everything deleted": {
			base: two, upstream: []leaves{{"a": text("a\n"), "b": text("b\n"), "u": text("u")}}, pod: []leaves{{}},
			want: leaves{"u": text("u")}, left: 1, unasked: true,
		},
		"nothing left at all": {
			base: two, upstream: []leaves{{"a": text("a\n")}}, pod: []leaves{{"b": text("b\n")}}, want: leaves{}, left: 1, unasked: true,
		},
	}
}

// conflicting are histories that nobody but a person can put together.
func conflicting() map[string]rebasing {
	base := leaves{"f": text(numbers()), "k": text("k")}
	with := func(path, content string) []leaves { return []leaves{{path: text(content), "k": text("k")}} }
	gone := []leaves{{"k": text("k")}}
	return map[string]rebasing{
		"C41 a: one line": {base: base, upstream: with("f", numbers("1", "theirs")), pod: with("f", numbers("1", "ours"))},
		"C41 b: deleted upstream, changed by the pod": {base: base, upstream: gone, pod: with("f", numbers("1", "one"))},
		"C41 c: changed upstream, deleted by the pod": {base: base, upstream: with("f", numbers("1", "one")), pod: gone},
		"C41 d: renamed to two names":                 {base: base, upstream: with("b", numbers()), pod: with("c", numbers())},
		"C41 d: in a directory that is gone":          {base: leaves{"d/f": text(numbers()), "k": text("k")}, upstream: with("b", numbers()), pod: with("c", numbers())},
		"C41 e: a file that became a directory":       {base: base, upstream: with("f/x", "new\n"), pod: with("f", numbers("1", "one"))},
		"C41 f: added twice":                          {base: gone[0], upstream: with("f", "\x00\x01"), pod: with("f", "\x00\x02")},
		"renamed upstream, deleted by the pod":        {base: base, upstream: with("g", numbers()), pod: gone},
		"deleted upstream, renamed by the pod":        {base: base, upstream: gone, pod: with("g", numbers())},
		"two renamed to one, different": {
			base:     leaves{"a": text(numbers()), "b": text(lines(1))},
			upstream: []leaves{{"b": text(lines(1)), "c": text(numbers())}},
			pod:      []leaves{{"a": text(numbers()), "c": text(lines(1))}},
		},
		"a file where the pod makes a directory": {base: gone[0], upstream: with("x", "x"), pod: with("x/y", "y")},
		"a directory where the pod makes a file": {base: gone[0], upstream: with("x/y", "y"), pod: with("x", "x")},
		"renamed to below what the pod makes":    {base: base, upstream: with("x/y", numbers()), pod: []leaves{{"f": text(numbers()), "x": text("x"), "k": text("k")}}},
		"the second commit": {
			base: base, upstream: with("f", numbers("1", "theirs")),
			pod: []leaves{{"f": text(numbers()), "n": text("n"), "k": text("k")}, {"f": text(numbers("1", "ours")), "n": text("n"), "k": text("k")}},
		},
	}
}

// kinds are histories in which something becomes another kind of file.
func kinds() map[string]rebasing {
	base := leaves{"f": text(numbers()), "k": text("k")}
	as := func(f leaf) []leaves { return []leaves{{"f": f, "k": text("k")}} }
	return map[string]rebasing{
		"a link upstream, text by the pod": {base: base, upstream: as(link("k")), pod: as(text(numbers("1", "one")))},
		"text upstream, a link by the pod": {base: base, upstream: as(text(numbers("1", "one"))), pod: as(link("k"))},
		"two links":                        {base: base, upstream: as(link("k")), pod: as(link("f"))},
		"the same link":                    {base: base, upstream: as(link("k")), pod: as(link("k")), want: as(link("k"))[0], unasked: true},
		"a link by the pod":                {base: base, upstream: []leaves{{"f": text(numbers()), "k": text("kk")}}, pod: as(link("k")), want: leaves{"f": link("k"), "k": text("kk")}, left: 1, unasked: true},
		"a directory by the pod": {
			base: base, upstream: []leaves{{"f": text(numbers()), "k": text("kk")}},
			pod: []leaves{{"f/x": text(numbers()), "k": text("k")}}, want: leaves{"f/x": text(numbers()), "k": text("kk")}, left: 1, unasked: true,
		},
		"a directory upstream": {
			base: base, upstream: []leaves{{"f/x": text("x"), "k": text("k")}},
			pod: []leaves{{"f": text(numbers()), "k": text("kk")}}, want: leaves{"f/x": text("x"), "k": text("kk")}, left: 1, unasked: true,
		},
		"a directory on both sides": {
			base: base, upstream: []leaves{{"f/u": text("u"), "k": text("k")}},
			pod: []leaves{{"f/p": text("p"), "k": text("k")}}, want: leaves{"f/u": text("u"), "f/p": text("p"), "k": text("k")}, left: 1,
		},
		"the same file in place of a directory, from which upstream moved a file": {
			base:     leaves{"d/f": text(numbers()), "k": text("k")},
			upstream: []leaves{{"d": text("d"), "g": text(numbers()), "k": text("k")}},
			pod:      []leaves{{"d": text("d"), "k": text("k")}},
		},
		"the same directory in place of a file, which upstream moved": {
			base:     base,
			upstream: []leaves{{"f/x": text("x"), "g": text(numbers()), "k": text("k")}},
			pod:      []leaves{{"f/x": text("x"), "k": text("k")}},
		},
		"a submodule moved upstream": {
			base: leaves{"s": module("1"), "k": text("k")}, upstream: []leaves{{"s": module("2"), "k": text("k")}},
			pod: []leaves{{"s": module("1"), "k": text("kk")}}, want: leaves{"s": module("2"), "k": text("kk")}, left: 1, unasked: true,
		},
		"a submodule moved twice": {
			base: leaves{"s": module("1"), "k": text("k")}, upstream: []leaves{{"s": module("2"), "k": text("k")}},
			pod: []leaves{{"s": module("3"), "k": text("k")}},
		},
	}
}

// attributed are histories in which attributes decide.
func attributed() map[string]rebasing {
	with := func(f, attributesPath, attributes string) leaves {
		return leaves{"d/f": text(f), attributesPath: text(attributes), "k": text("k")}
	}
	row := func(path, attributes string) rebasing {
		return rebasing{
			base:     with(numbers(), path, attributes),
			upstream: []leaves{with(numbers("1", "theirs"), path, attributes)},
			pod:      []leaves{with(numbers("1", "ours"), path, attributes)},
		}
	}
	union := func(path, attributes string) rebasing {
		r := row(path, attributes)
		r.want, r.left = with(numbers("1", "theirs\nours"), path, attributes), 1
		return r
	}
	apart := func(attributes string) rebasing {
		return rebasing{
			base:     with(numbers(), ".gitattributes", attributes),
			upstream: []leaves{with(numbers("1", "one"), ".gitattributes", attributes)},
			pod:      []leaves{with(numbers("20", "twenty"), ".gitattributes", attributes)},
		}
	}
	late := row("k2", "")
	late.pod = []leaves{{"d/f": text(numbers("1", "ours")), ".gitattributes": text("* merge=union\n"), "k2": text(""), "k": text("k")}}
	early := late
	early.upstream, early.pod = late.pod, late.upstream
	early.want, early.left = leaves{"d/f": text(numbers("1", "ours\ntheirs")), ".gitattributes": text("* merge=union\n"), "k2": text(""), "k": text("k")}, 1
	linked := row("k2", "")
	for _, tree := range []leaves{linked.base, linked.upstream[0], linked.pod[0]} {
		tree[".gitattributes"], tree["real"] = link("real"), text("* merge=union\n")
	}
	moved := union("e/.gitattributes", "* merge=union\n")
	moved.upstream = []leaves{{"e/f": text(numbers("1", "theirs")), "e/.gitattributes": text("* merge=union\n"), "k": text("k")}}
	moved.want = leaves{"e/f": text(numbers("1", "theirs\nours")), "e/.gitattributes": text("* merge=union\n"), "k": text("k")}
	return map[string]rebasing{
		"no attributes":                         row("k2", ""),
		"union at the root":                     union(".gitattributes", "*f merge=union\n"),
		"union beside the file":                 union("d/.gitattributes", "/f merge=union\n"),
		"union elsewhere":                       row("e/.gitattributes", "* merge=union\n"),
		"union where the file was moved to":     moved,
		"union that only the pod's commit has":  late,
		"union that upstream has":               early,
		"attributes behind a link do not count": linked,
		"binary: no lines are merged":           apart("* binary\n"),
		"merge unset: no lines are merged":      apart("* -merge\n"),
		"a merge driver that nobody has set up": row(".gitattributes", "* merge=mine\n"),
	}
}

// TestRebaseClockSkew has a root that is younger than what follows it (C40 e).
func TestRebaseClockSkew(t *testing.T) {
	w := newWorkshop(t)
	at := func(seconds int64, tree leaves, parents ...object.ID) object.ID {
		w.clock = time.Unix(seconds-1, 0).UTC()
		return w.commit(t, tree, parents...)
	}
	root := at(2_000_000_000, leaves{"r": text("r")})
	base := at(1_000_000_000, leaves{"r": text("r"), "b": text("b")}, root)
	onto := at(1_000_000_050, leaves{"r": text("r"), "b": text("b"), "u": text("u")}, base)
	tip := at(1_000_000_100, leaves{"r": text("r"), "b": text("b"), "p": text("p")}, base)
	if found, err := w.repository.MergeBase(onto, tip); err != nil || found != base {
		t.Errorf("the merge base is %s, %v, want %s", found, err, base)
	}
	replay := w.replay(base, tip, onto)
	replay.Committer.When = time.Unix(999_000_000, 0).UTC() // a node two days behind
	got, err := w.repository.Rebase(t.Context(), replay)
	if err != nil || got.Replayed != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	w.git(t, w.tree, "fsck", "--strict", "--no-progress", got.Tip.String())
	if count := w.git(t, w.tree, "rev-list", "--count", onto.String()+".."+got.Tip.String()); count != "1" {
		t.Errorf("git counts %s commits ahead", count)
	}
}
