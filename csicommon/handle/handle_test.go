package handle_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"liken.sh/csicommon/event"
	"liken.sh/csicommon/handle"
)

// The bad rows are C10's: each made some driver leave its own directory, or
// write a raw control byte into a log.
func TestCheckNamesTheBrokenRule(t *testing.T) {
	for _, row := range []struct{ handle, rule string }{
		{"", "empty"},
		{".", "part 1 between the dots is empty"},
		{"..", "part 1 between the dots is empty"},
		{"../x", "one path component"},
		{"a/../b", "one path component"},
		{"/etc", "one path component"},
		{"a/b", "one path component"},
		{"%2e%2e", `'%'`},
		{"a\x00", "control byte 0x00"},
		{"A", "upper-case letter 'A'"},
		{"a_b", "underscore"},
		{"-a", "part 1 starts with '-'"},
		{"a-", "part 1 ends with '-'"},
		{"a.-b", "part 2 starts with '-'"},
		{"a-.b", "part 1 ends with '-'"},
		{".a", "part 1 between the dots is empty"},
		{"a.", "part 2 between the dots is empty"},
		{"a..b", "part 2 between the dots is empty"},
		{"a ", "' '"},
		{" a", "' '"},
		{"a\n", "control byte 0x0a"},
		{"a\tb", "control byte 0x09"},
		{`a\b`, `'\\'`},
		{"\xc3\xa9", "0xc3, outside ASCII"},
		{"\xef\xbd\x81", "0xef, outside ASCII"},
		{"a\x7f", "control byte 0x7f"},
		{strings.Repeat("a", 254), "254 bytes long"},
		{strings.Repeat("a", 1<<20), "1048576 bytes long"},
		{strings.Repeat("\xff", 1<<20), "1048576 bytes long"},
		{strings.Repeat("A_/\x00-.-..", 1<<17), "1179648 bytes long"},
	} {
		err := handle.Check(row.handle)
		if !errors.Is(err, handle.ErrInvalid) {
			t.Errorf("Check(%.40q) = %v, want ErrInvalid", row.handle, err)
			continue
		}
		if !strings.Contains(err.Error(), row.rule) {
			t.Errorf("Check(%.40q) = %.200q, want it to name %q", row.handle, err, row.rule)
		}
		checkProperties(t, row.handle)
	}
}

// Whoever mends one rule a time has to write the PersistentVolume anew for each.
func TestCheckNamesEveryBrokenRuleOnce(t *testing.T) {
	for _, row := range []struct{ handle, want string }{
		{"My_Data/Dir", `volume handle "My_Data/Dir" is refused: byte 1 is the upper-case letter 'M', only lower case is allowed; ` +
			`byte 3 is an underscore, use '-'; byte 8 is '/', a handle is one path component: not a volume handle`},
		{"a b\n..-c.-.", `volume handle "a b\n..-c.-." is refused: byte 2 is ' ', only a-z, 0-9, '-' and '.' are allowed; ` +
			`part 2 between the dots is empty; part 3 starts with '-', each part starts with a letter or a digit; ` +
			`part 4 ends with '-', each part ends with a letter or a digit: not a volume handle`},
		{strings.Repeat("a", 253) + "_", `volume handle "` + strings.Repeat("a", 253) + `_" is refused: ` +
			`it is 254 bytes long, a handle has at most 253; byte 254 is an underscore, use '-': not a volume handle`},
		{strings.Repeat("\x00", 72), `volume handle "` + strings.Repeat(`\x00`, 63) + `" (cut) is refused: ` +
			`byte 1 is the control byte 0x00, only a-z, 0-9, '-' and '.' are allowed: not a volume handle`},
	} {
		if err := handle.Check(row.handle); err == nil || err.Error() != row.want {
			t.Errorf("Check(%.40q)\n got %v\nwant %s", row.handle, err, row.want)
		}
	}
}

func TestCheckTakesSubdomains(t *testing.T) {
	for _, h := range []string{
		"a", "0", "a.b", "a-b.c-d", "a--b", "pvc-0f1e.data-0",
		strings.Repeat("a", 253),
		"a" + strings.Repeat(".a", 126),
	} {
		if err := handle.Check(h); err != nil {
			t.Errorf("Check(%q) = %v, want nil", h, err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("a/../b")
	f.Add("a\n")
	f.Fuzz(func(t *testing.T, h string) { checkProperties(t, h) })
}

func TestCheckProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkProperties(t, rapid.StringOfN(rapid.SampledFrom([]rune("ab0-./_A é\n")), 0, 300, -1).Draw(t, "handle"))
	})
}

// checkProperties: whatever passes is one plain path component, and whatever
// does not is told in printable words.
func checkProperties(t interface{ Errorf(string, ...any) }, h string) {
	err := handle.Check(h)
	if err == nil {
		if h == "" || h == "." || h == ".." || strings.ContainsAny(h, "/\x00\n \\") || len(h) > 253 {
			t.Errorf("Check(%q) = nil", h)
		}
		return
	}
	if !utf8.ValidString(err.Error()) || strings.ContainsAny(err.Error(), "\x00\n\r\t\x1b") {
		t.Errorf("Check(%q): raw bytes in the message %q", h, err)
	}
	if len(err.Error()) > event.MaxMessage {
		t.Errorf("Check(%.40q): message of %d bytes does not fit an Event", h, len(err.Error()))
	}
	for bytes, rule := range map[string]string{
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ": "lower case", "/": "one path component", "_": "underscore", "\x00 \n\\%": "only a-z",
	} {
		if strings.ContainsAny(h, bytes) && !strings.Contains(err.Error(), rule) {
			t.Errorf("Check(%.40q) = %q, want it to name %q too", h, err, rule)
		}
	}
}
