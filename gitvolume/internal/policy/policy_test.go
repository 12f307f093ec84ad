package policy

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for _, row := range []struct {
		name   string
		given  map[string]string
		change func(*Policy)
	}{
		{"nothing", nil, func(*Policy) {}},
		{"the resizer's own", map[string]string{"csi.storage.k8s.io/pvc/name": "c"}, func(*Policy) {}},
		{"the least", map[string]string{"push.quiesce": "5s"}, func(p *Policy) { p.Quiesce = 5 * time.Second }},
		{"quiesce beyond the default latency", map[string]string{"push.quiesce": "10m"}, func(p *Policy) { p.Quiesce, p.MaxLatency = 10*time.Minute, 10*time.Minute }},
		{"latency equal to the default quiesce", map[string]string{"push.maxLatency": "30s"}, func(p *Policy) { p.MaxLatency = 30 * time.Second }},
		{"never", map[string]string{"push.maxLatency": "never", "push.quiesce": "1h"}, func(p *Policy) { p.Quiesce, p.MaxLatency = time.Hour, 0 }},
		{"no limit", map[string]string{"commit.maxFileSize": "0"}, func(p *Policy) { p.MaxFileSize = 0 }},
		{"binary", map[string]string{"commit.maxFileSize": "1.5Mi"}, func(p *Policy) { p.MaxFileSize = 3 << 19 }},
		{"decimal", map[string]string{"commit.maxFileSize": "500k"}, func(p *Policy) { p.MaxFileSize = 500000 }},
		{"exponent", map[string]string{"commit.maxFileSize": "1e3"}, func(p *Policy) { p.MaxFileSize = 1000 }},
		{"greatest", map[string]string{"commit.maxFileSize": "9223372036854775807"}, func(p *Policy) { p.MaxFileSize = 1<<63 - 1 }},
		{"beyond the greatest", map[string]string{"commit.maxFileSize": "10Ei"}, func(p *Policy) { p.MaxFileSize = 1<<63 - 1 }},
		{"author", map[string]string{"commit.author": "Bot <bot@x>"}, func(p *Policy) { p.Author = Author{"Bot", "bot@x"} }},
		{"author's name", map[string]string{"commit.author": "Bot"}, func(p *Policy) { p.Author.Name = "Bot" }},
		{"no pattern", map[string]string{"ignore": ""}, func(*Policy) {}},
		{"patterns", map[string]string{"ignore": `*.tmp, /cache/ ,,!a b,\,x\\,y\ , z`}, func(p *Policy) {
			p.Ignore = []string{"*.tmp", "/cache/", "!a b", `\,x\\`, `y\ `, "z"}
		}},
		{"no metadata", map[string]string{"metadata": "false"}, func(p *Policy) { p.Metadata = false }},
		{"paused", map[string]string{"armed": "false"}, func(p *Policy) { p.Armed = false }},
	} {
		want := Default()
		row.change(&want)
		got, err := Parse(row.given)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", row.name, got, err, want)
		}
		checkRoundTrip(t, got)
	}
}

func checkRoundTrip(t interface{ Errorf(string, ...any) }, p Policy) {
	text, err := json.Marshal(p)
	if err != nil {
		t.Errorf("%+v: %v", p, err)
	}
	var again Policy
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, p) {
		t.Errorf("%s is read as %+v, %v, want %+v", text, again, err, p)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := map[string]string{
			"commit.author": rapid.String().Draw(t, "author"),
			"ignore":        strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"a", ",", `\`, " ", "#", "!", "*"})).Draw(t, "ignore"), ""),
		}
		p, err := Parse(given)
		if err != nil {
			return
		}
		checkRoundTrip(t, p)
	})
}

func TestParseRefuses(t *testing.T) {
	for _, row := range []struct{ name, value, says string }{
		{"push.quiesce", "4999ms", "5s"},
		{"push.quiesce", "30", "duration"},
		{"push.quiesce", "", "duration"},
		{"push.quiesce", "never", "duration"},
		{"push.maxLatency", "29s", "less than push.quiesce, which is 30s"},
		{"push.maxLatency", "0", "never"},
		{"commit.maxFileSize", "", "bytes"},
		{"commit.maxFileSize", "-1", "bytes"},
		{"commit.maxFileSize", "1MB", "bytes"},
		{"commit.maxFileSize", "1500m", "bytes"},
		{"commit.maxFileSize", "9223372036854775808", "bytes"},
		{"commit.maxFileSize", "1e30", "bytes"},
		{"commit.maxFileSize", "1e999", "bytes"},
		{"commit.maxFileSize", "1e999999999999", "bytes"},
		{"commit.maxFileSize", "1E-999999999999", "bytes"},
		{"commit.maxFileSize", strings.Repeat("9", 100000), "bytes"},
		{"commit.author", "", "no name"},
		{"commit.author", ".", "no name"},
		{"commit.author", "<a@b>", "no name"},
		{"commit.author", "Bot <>", "no address"},
		{"commit.author", "Bot <.>", "no address"},
		{"ignore", "a\nb", "line break"},
		{"ignore", "a,#b", "comment"},
		{"ignore", `a\`, "backslash"},
		{"metadata", "yes", "true nor false"},
		{"armed", "True", "true nor false"},
		{"armd", "true", `"armd" is not known; there are armed, commit.author`},
		{"bad\nname", "", `"bad\nname"`},
	} {
		p, err := Parse(map[string]string{row.name: row.value})
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), row.says) || !reflect.DeepEqual(p, Policy{}) {
			t.Errorf("%s=%q: the error does not say %q: %v", row.name, row.value, row.says, err)
		}
	}
	for range 20 {
		_, err := Parse(map[string]string{"unknown": "", "push.quiesce": "1s", "armed": "x", "metadata": "x"})
		if err == nil || !strings.Contains(err.Error(), "parameter armed") {
			t.Fatalf("of several mistakes another one is named: %v", err)
		}
	}
}

func TestArm(t *testing.T) {
	const driver = "git.liken.sh"
	for _, row := range []struct {
		class Class
		want  error
	}{
		{Class{"c", driver, map[string]string{"armed": "true"}}, nil},
		{Class{"c", "other", map[string]string{"armed": "true"}}, ErrForeign},
		{Class{"c", driver, map[string]string{"armed": "false"}}, ErrPaused},
		{Class{"c", driver, map[string]string{"x": ""}}, ErrInvalid},
	} {
		p, err := row.class.Arm(driver)
		if !errors.Is(err, row.want) || (err == nil) != (row.want == nil) {
			t.Errorf("%+v: %v", row.class, err)
		}
		if err != nil && strings.Count(err.Error(), "class") != 1 {
			t.Errorf("%+v: it does not say once that it is about a class: %v", row.class, err)
		}
		if wantQuiesce := row.want == nil || errors.Is(row.want, ErrPaused); wantQuiesce != (p.Quiesce != 0) {
			t.Errorf("%+v: with %v comes %+v", row.class, err, p)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("push.maxLatency", "never")
	f.Add("commit.author", "Bot <x>\n evil")
	f.Add("ignore", `a\,b, c\ `)
	f.Add("commit.maxFileSize", "1Mi")
	f.Fuzz(func(t *testing.T, name, value string) {
		p, err := Parse(map[string]string{name: value})
		if err == nil {
			checkRoundTrip(t, p)
		}
	})
}
