package store

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/object"
)

func aReading(key string) Record {
	r := aRecord("v")
	r.Kind = ReadOnly
	r.Reading = &Reading{Pull: "5m0s", Offline: "refuse", Checkout: key, Scope: "s", Commit: id("1")}
	return r
}

func TestReadingThatCannotBe(t *testing.T) {
	good := CheckoutKey([32]byte{7})
	for name, change := range map[string]func(r *Reading){
		"":                             func(*Reading) {},
		"a key that leads elsewhere":   func(r *Reading) { r.Checkout = "../" + good[3:] },
		"no key":                       func(r *Reading) { r.Checkout = "" },
		"a key in upper case":          func(r *Reading) { r.Checkout = strings.Repeat("A", len(good)) },
		"no commit":                    func(r *Reading) { r.Commit = object.ID{} },
		"a scope with bytes of no use": func(r *Reading) { r.Scope = "\xff" },
	} {
		r := aReading(good)
		change(r.Reading)
		if _, err := formatRecord(r); (err == nil) != (name == "") || err != nil && !errors.Is(err, ErrRecord) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckoutsComeAndGo(t *testing.T) {
	f := newFixture(t)
	key := CheckoutKey([32]byte{7})
	for range 2 {
		f.must(f.store.MakeCheckout(key))
	}
	f.must(os.Mkdir(f.store.CheckoutDir(key)+"/tree", 0o755))
	f.write("somebody's", checkoutsDir, "notes.txt")
	if keys, err := f.store.Checkouts(); err != nil || len(keys) != 1 || keys[0] != key {
		t.Errorf("there are %v, %v", keys, err)
	}
	for range 2 {
		f.must(f.store.RemoveCheckout(key))
	}
	if f.exists(checkoutsDir, key) || f.glob("trash/now/*/*/tree") != 1 {
		t.Error("it is not in the trash")
	}
}

// TestRefsOfCheckoutsStay as long as a record names the checkout, or may.
func TestRefsOfCheckoutsStay(t *testing.T) {
	f := newFixture(t)
	key, other := CheckoutKey([32]byte{7}), CheckoutKey([32]byte{8})
	f.must(f.store.Save(aReading(key)))
	r := f.repository(aURL)
	f.commit(r, CheckoutRef(key, AnchorTip), CheckoutRef(key, AnchorNext), CheckoutRef(other, AnchorTip))
	tidy := func(want int) {
		t.Helper()
		f.must(f.store.Tidy(context.Background(), noGC))
		if refs := f.refs(r); len(refs) != want || !refs[CheckoutRef(key, AnchorTip)] || !refs[CheckoutRef(key, AnchorNext)] {
			t.Errorf("left are %v, want %d", refs, want)
		}
	}
	f.write(`{"version": 9}`, volumesDir, "v", recordFile)
	tidy(3)
	f.must(f.store.Save(aReading(key)))
	tidy(2)
}
