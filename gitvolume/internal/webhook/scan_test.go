package webhook

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestScanObject(t *testing.T) {
	for name, row := range map[string]struct {
		in, name, nested string
		says             string // of the error
	}{
		"both":               {in: ` {"name":"a","other":[{"name":"x"},1.5e3,null,true],"in":{"name":"b"}} `, name: "a", nested: "b"},
		"escapes":            {in: `{"n\u0061me":"\"\\\/\b\u00e9\ud83d\ude00\n"}`, name: "\"\\/\bé😀\n"},
		"the last counts":    {in: `{"name":"a","name":"b"}`, name: "b"},
		"null":               {in: `{"name":null,"in":null}`},
		"nothing":            {in: `{}`},
		"another's":          {in: `{"x":{"name":"a","in":{"name":"b"}}}`},
		"what is no object":  {in: `{"in":["name","b"]}`},
		"a long one":         {in: `{"x":"` + strings.Repeat("x", 1<<20) + `","name":"a"}`, name: "a"},
		"a number":           {in: `{"name":7}`, says: "should be a string"},
		"an object":          {in: `{"name":{}}`, says: "should be a string"},
		"true":               {in: `{"name":true}`, says: "should be a string"},
		"no null":            {in: `{"name":nil}`, says: "no value"},
		"too long":           {in: `{"name":"` + strings.Repeat("x", longestKept+1) + `"}`, says: "more than"},
		"a long number":      {in: `{"x":` + strings.Repeat("1", longestKept+2) + `}`, says: "digits"},
		"too deep":           {in: `{"x":` + strings.Repeat("[", 1<<19), says: "deeper"},
		"half":               {in: `{"name":"a"`, says: "unexpected EOF"},
		"half a string":      {in: `{"name":"a`, says: "unexpected EOF"},
		"something after it": {in: `{}{}`, says: "after"},
		"no object":          {in: `[]`, says: "no JSON object"},
		"no comma":           {in: `{"x":1 "y":2}`, says: "a comma"},
		"a comma too many":   {in: `{"x":1,}`, says: "the name of a member"},
		"no value":           {in: `{"x":}`, says: "a value"},
		"no colon":           {in: `{"x"}`, says: "a colon"},
		"a broken escape":    {in: `{"x":"\x"}`, says: "an escape"},
		"half an escape":     {in: `{"x":"\u12"}`, says: "hexadecimal"},
		"a line in a string": {in: "{\"x\":\"\n\"}", says: "next character"},
	} {
		t.Run(name, func(t *testing.T) {
			var name, nested string
			want := &wanted{members: map[string]*wanted{
				"name": {text: &name}, "in": {members: map[string]*wanted{"name": {text: &nested}}},
			}}
			err := scanObject(iotest.HalfReader(strings.NewReader(row.in)), want)
			switch {
			case row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says)):
				t.Errorf("the error is %v, want one with %q", err, row.says)
			case row.says == "" && (err != nil || name != row.name || nested != row.nested):
				t.Errorf("%.40q and %q, %v, want %q and %q", name, nested, err, row.name, row.nested)
			}
		})
	}
}

// A failure to read is no end.
func TestScanWhatCannotBeRead(t *testing.T) {
	for _, in := range []string{``, `{"x":1`, `{"x":"`, `{}`} {
		if err := scanObject(io.MultiReader(strings.NewReader(in), iotest.ErrReader(io.ErrClosedPipe)), nil); !strings.Contains(err.Error(), io.ErrClosedPipe.Error()) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// An object is JSON to the scanner if and only if it is to encoding/json, but for the bounds.
func FuzzScanObject(f *testing.F) {
	for _, name := range []string{"github-push", "gitlab-push", "gitea-push", "forgejo-push", "github-ping"} {
		f.Add(fixture(f, name))
	}
	f.Add([]byte(`{"a":[-0.1e+5,{}," \u12aF\"",[]],"b":{"c":null}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		text := ""
		err := scanObject(bytes.NewReader(body), &wanted{members: map[string]*wanted{"a": {members: map[string]*wanted{"b": {text: &text}}}}})
		isObject := json.Valid(body) && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{"))
		if err == nil && !isObject {
			t.Errorf("%q is taken for an object", body)
		}
		if err != nil && isObject && !isBound(err.Error()) {
			t.Errorf("%q is no object: %v", body, err)
		}
	})
}

func isBound(says string) bool {
	return strings.Contains(says, "deeper than") || strings.Contains(says, "more than") || strings.Contains(says, "should be a string")
}
