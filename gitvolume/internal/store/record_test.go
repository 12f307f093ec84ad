package store

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/policy"
)

var update = flag.Bool("update", false, "write the golden files anew")

func id(digit string) object.ID {
	id, err := object.Parse(strings.Repeat(digit, 40))
	if err != nil {
		panic(err)
	}
	return id
}

// fullRecord has everything that a record can say.
func fullRecord() Record {
	class := policy.Default()
	class.Ignore = []string{"*.tmp", `a\,b`}
	group := uint32(2000)
	after := Position{Tip: id("3"), Base: id("2"), Followed: true}
	return Record{
		Handle: "notes.example", Kind: Writeable, URL: mustURL("git@example.com:o/r.git"), Ref: "main",
		PV: "pv-notes", Claim: Object{Namespace: "ns", Name: "notes", UID: "11111111-2222-3333-4444-555555555555"},
		Reclaim: "Retain", Staged: true,
		Targets: []Target{{Path: "/var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/pv-notes/mount", Pod: Object{Namespace: "ns", Name: "p", UID: "u"}, ReadOnly: true}},
		Class:   Class{Name: "quick", Policy: &class},
		Group:   &group, GroupGiven: true,
		Position: Position{
			Tree: Identity{Inode: 4711, Born: 1784030000123456789},
			Tip:  id("1"), Base: id("2"), Side: id("4"), Diverged: true, Followed: true, Leaving: id("9"), Left: id("b"),
			Metadata: id("5"), MetadataBase: id("6"), MetadataAgreed: id("a"), Replaying: true, Late: true, Stopped: true,
			Move: &Move{From: id("1"), To: id("3"), FromTree: id("7"), ToTree: id("8"), Token: "0123456789abcdef", Then: after},
		},
	}
}

// TestRecordIsWrittenAsEver holds what is on nodes already: a change of it needs a new
// version, or reads the old one too.
func TestRecordIsWrittenAsEver(t *testing.T) {
	path := filepath.Join("testdata", "record.json")
	text, err := formatRecord(fullRecord())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(text, golden) {
		t.Errorf("%v; it is written as\n%s\nwant\n%s", err, text, golden)
	}
	read, err := parseRecord("notes.example", golden)
	if err != nil || !reflect.DeepEqual(read, fullRecord()) {
		t.Errorf("it is read as %+v, %v", read, err)
	}
}

func TestRecordThatCannotBeRead(t *testing.T) {
	whole, err := formatRecord(aRecord("v"))
	if err != nil {
		t.Fatal(err)
	}
	change := func(from, to string) string {
		changed := strings.Replace(string(whole), from, to, 1)
		if changed == string(whole) {
			t.Fatalf("%q is not in the record", from)
		}
		return changed
	}
	for _, row := range []struct {
		name, text string
		want       error
		words      string
	}{
		{"empty, as after a power cut", "", ErrDamagedRecord, ""},
		{"zeros, as after a power cut", strings.Repeat("\x00", 200), ErrDamagedRecord, ""},
		{"cut off", string(whole[:len(whole)/2]), ErrDamagedRecord, ""},
		{"something behind it", string(whole) + "{}", ErrDamagedRecord, ""},
		{"a later version", change(`"version": 1`, `"version": 2`), ErrNewerRecord, "version 2"},
		{"a later version of another form", `{"version": 3, "handle": 7}`, ErrNewerRecord, "version 3"},
		{"no version", change(`"version": 1`, `"version": 0`), ErrDamagedRecord, "version is 0"},
		{"of another volume", change(`"handle": "v"`, `"handle": "w"`), ErrDamagedRecord, `volume "w"`},
		{"no kind", change(`"kind": "writeable"`, `"kind": ""`), ErrDamagedRecord, "kind"},
		{"a URL that is none", change(aURL, "-x"), ErrDamagedRecord, "-x"},
		{"no URL", change(aURL, ""), ErrDamagedRecord, "no URL"},
		{"no ref", change(`"ref": "main"`, `"ref": ""`), ErrDamagedRecord, "no ref"},
		{"a writeable volume with a checkout", change(`"ref": "main"`, `"ref": "main", "reading": {}`), ErrDamagedRecord, "checkout"},
		{"a tip that is none", change(`"ref": "main"`, `"ref": "main", "position": {"tip": "main"}`), ErrDamagedRecord, `"main"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			if read, err := parseRecord("v", []byte(row.text)); !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.words) || !reflect.DeepEqual(read, Record{}) {
				t.Errorf("%+v, %v, want %v with %q", read, err, row.want, row.words)
			}
		})
	}
}

func TestRecordThatSaysWhatNoneCan(t *testing.T) {
	for name, spoil := range map[string]func(*Record){
		"a handle that is none":     func(r *Record) { r.Handle = "../v" },
		"a kind that is none":       func(r *Record) { r.Kind = "block" },
		"no URL":                    func(r *Record) { r.URL = fullRecord().URL; *r = Record{Handle: r.Handle, Kind: r.Kind, Ref: r.Ref} },
		"writeable with a depth":    func(r *Record) { r.Depth = 1 },
		"a ref that is no UTF-8":    func(r *Record) { r.Ref = "\xff" },
		"a target without a slash":  func(r *Record) { r.Targets[0].Path = "mount" },
		"one target twice":          func(r *Record) { r.Targets = append(r.Targets, r.Targets[0]) },
		"a pod that is no UTF-8":    func(r *Record) { r.Targets[0].Pod.Name = "\xff" },
		"a move without a token":    func(r *Record) { r.Position.Move.Token = "" },
		"a move that ends with one": func(r *Record) { r.Position.Move.Then.Move = &Move{Token: "x"} },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			r := fullRecord()
			spoil(&r)
			if err := f.store.Save(r); err == nil {
				t.Error("it was saved")
			}
			if f.glob(volumesDir+"/*") != 0 {
				t.Error("something was written")
			}
		})
	}
}

func TestRecordComesBackAsItWas(t *testing.T) {
	text := rapid.StringMatching(`[ -~äΩ]{0,20}`)
	ids := rapid.Custom(func(t *rapid.T) (id object.ID) {
		copy(id[:], rapid.SliceOfN(rapid.Byte(), 0, object.IDSize).Draw(t, "id"))
		return id
	})
	objects := rapid.Custom(func(t *rapid.T) Object {
		return Object{text.Draw(t, "namespace"), text.Draw(t, "name"), text.Draw(t, "uid")}
	})
	positions := rapid.Custom(func(t *rapid.T) Position {
		return Position{
			Tip: ids.Draw(t, "tip"), Base: ids.Draw(t, "base"), Side: ids.Draw(t, "side"), Metadata: ids.Draw(t, "metadata"),
			MetadataBase: ids.Draw(t, "metadata base"), MetadataAgreed: ids.Draw(t, "agreed"), Leaving: ids.Draw(t, "leaving"), Left: ids.Draw(t, "left"),
			Replaying: rapid.Bool().Draw(t, "replaying"), Late: rapid.Bool().Draw(t, "late"), Diverged: rapid.Bool().Draw(t, "diverged"),
			Followed: rapid.Bool().Draw(t, "followed"), Stopped: rapid.Bool().Draw(t, "stopped"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		r := fullRecord()
		r.Ref = "r" + text.Draw(t, "ref")
		r.PV, r.Reclaim, r.Class.Name = text.Draw(t, "pv"), text.Draw(t, "reclaim"), text.Draw(t, "class")
		r.Claim, r.Position, r.Targets = objects.Draw(t, "claim"), positions.Draw(t, "position"), nil
		for i := range rapid.IntRange(0, 3).Draw(t, "targets") {
			r.Targets = append(r.Targets, Target{Path: strings.Repeat("/", i+1) + text.Draw(t, "target"), Pod: objects.Draw(t, "pod")})
			if i > 0 && r.Targets[i].Path == r.Targets[i-1].Path {
				r.Targets = r.Targets[:i]
				break
			}
		}
		if rapid.Bool().Draw(t, "moves") {
			r.Position.Move = &Move{From: ids.Draw(t, "from"), To: ids.Draw(t, "to"), Token: "t", Then: positions.Draw(t, "then")}
		}
		written, err := formatRecord(r)
		if errors.Is(err, ErrRecord) && strings.Contains(err.Error(), "twice") {
			t.Skip("two targets were drawn alike")
		}
		if err != nil {
			t.Fatal(err)
		}
		if read, err := parseRecord(r.Handle, written); err != nil || !reflect.DeepEqual(read, r) {
			t.Fatalf("%+v, %v, want %+v", read, err, r)
		}
	})
}

func FuzzRecord(f *testing.F) {
	whole, err := formatRecord(fullRecord())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add([]byte(`{"version":1,"handle":"notes.example","kind":"inline","url":"https://e/r","ref":"x","position":{"move":{"token":"t","then":{}}}}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseRecord("notes.example", text)
		if err != nil {
			if !errors.Is(err, ErrDamagedRecord) && !errors.Is(err, ErrNewerRecord) {
				t.Fatalf("the error is of no kind: %v", err)
			}
			return
		}
		written, err := formatRecord(r)
		if err != nil {
			t.Fatalf("it is read and cannot be written: %v", err)
		}
		again, err := parseRecord("notes.example", written)
		if err != nil {
			t.Fatalf("what is written cannot be read: %v", err)
		}
		if twice, err := formatRecord(again); err != nil || !bytes.Equal(twice, written) {
			t.Fatalf("%v; it changes when it is written again:\n%s\n%s", err, written, twice)
		}
	})
}

func TestHasUnpushed(t *testing.T) {
	for name, row := range map[string]struct {
		position Position
		want     bool
	}{
		"nothing at all":              {Position{}, false},
		"as upstream":                 {Position{Tip: id("1"), Base: id("1")}, false},
		"ahead":                       {Position{Tip: id("2"), Base: id("1")}, true},
		"the first commit of all":     {Position{Tip: id("1")}, true},
		"on the side branch":          {Position{Tip: id("2"), Base: id("1"), Side: id("2"), Diverged: true}, false},
		"ahead of the side branch":    {Position{Tip: id("3"), Base: id("1"), Side: id("2"), Diverged: true}, true},
		"the side branch is not made": {Position{Tip: id("3"), Base: id("1"), Diverged: true}, true},
	} {
		if got := row.position.HasUnpushed(); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
