package metadata

import (
	"testing"

	"pgregory.net/rapid"

	"liken.sh/gitvolume/internal/object"
)

func TestFreshEntry(t *testing.T) {
	parent := Seen{Kind: Directory, Mode: 0o755, Owner: 1000, Group: 2000}
	own := func(kind Kind, mode uint32) Seen { return Seen{Kind: kind, Mode: mode, Owner: 1000, Group: 2000} }
	for name, row := range map[string]struct {
		seen Seen
		want Entry
	}{
		"a file":                {own(File, 0o644), Entry{}},
		"an executable":         {own(File, 0o755), Entry{}},
		"a directory":           {own(Directory, 0o755), Entry{}},
		"a link":                {own(Link, 0o777), Entry{}},
		"an empty directory":    {own(Empty, 0o755), Entry{Kind: Empty}},
		"0640":                  {own(File, 0o640), Entry{Kind: File, Mode: Set(0o640)}},
		"0700":                  {own(File, 0o700), Entry{Kind: File, Mode: Set(0o700)}},
		"0000":                  {own(File, 0), Entry{Kind: File, Mode: Set(0)}},
		"executable for others": {own(File, 0o645), Entry{Kind: File, Mode: Set(0o645)}},
		"setuid":                {own(File, 0o4755), Entry{Kind: File, Mode: Set(0o4755)}},
		"sticky":                {own(Directory, 0o1777), Entry{Kind: Directory, Mode: Set(0o1777)}},
		"root's file":           {Seen{File, 0o644, 0, 2000}, Entry{Kind: File, Owner: Set(0)}},
		"another group's link":  {Seen{Link, 0o777, 1000, 0}, Entry{Kind: Link, Group: Set(0)}},
	} {
		if got := Plain().Entry(row.seen, parent); got != row.want {
			t.Errorf("%s: the entry is %+v, want %+v", name, got, row.want)
		}
	}
}

func TestReplayedGivesWhatWasSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom([]uint32{0, 1, 1000, noID - 1})
		seen := Seen{
			Kind:  rapid.SampledFrom([]Kind{File, Directory, Empty, Link}).Draw(t, "kind"),
			Mode:  rapid.Uint32Range(0, maxMode).Draw(t, "mode"),
			Owner: id.Draw(t, "owner"), Group: id.Draw(t, "group"),
		}
		if seen.Kind == Link {
			seen.Mode = 0
		}
		parent := Seen{Kind: Directory, Owner: id.Draw(t, "parent's owner"), Group: id.Draw(t, "parent's group")}
		gitMode := object.Regular
		if seen.Mode&ownerExecutes != 0 {
			gitMode = object.Executable
		}
		entry := Plain().Entry(seen, parent)
		if got := Plain().Replayed(entry, seen.Kind, gitMode, parent); got != seen {
			t.Fatalf("%+v came back as %+v by %+v", seen, got, entry)
		}
	})
}

func TestReplayedAfterAChangeByGit(t *testing.T) {
	parent := Seen{Kind: Directory, Mode: 0o755}
	for name, row := range map[string]struct {
		entry   Entry
		kind    Kind
		gitMode object.Mode
		want    uint32
	}{
		"private, made executable":    {Entry{Kind: File, Mode: Set(0o600)}, File, object.Executable, 0o700},
		"for the group, executable":   {Entry{Kind: File, Mode: Set(0o640)}, File, object.Executable, 0o750},
		"no longer executable":        {Entry{Kind: File, Mode: Set(0o750)}, File, object.Regular, 0o640},
		"became a directory":          {Entry{Kind: File, Mode: Set(0o600)}, Directory, object.Directory, 0o755},
		"became a link":               {Entry{Kind: File, Mode: Set(0o600)}, Link, object.Symlink, 0},
		"a directory nobody executes": {Entry{Kind: Directory, Mode: Set(0o600)}, Directory, object.Directory, 0o600},
	} {
		if got := Plain().Replayed(row.entry, row.kind, row.gitMode, parent); got.Mode != row.want {
			t.Errorf("%s: the mode is %#o, want %#o", name, got.Mode, row.want)
		}
	}
}
