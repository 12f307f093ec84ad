package version

import (
	"strings"
	"testing"
)

func TestValid(t *testing.T) {
	for text, valid := range map[string]bool{
		"v0.1.0": true, "v12.0.3": true,
		"0.1.0": false, "v1": false, "v1.2": false, "v01.2.3": false, "v1.2.3-rc.1": false, "v1.2.3+linux": false,
		"": false, "latest": false, "v1.2.3.4": false, "pernode/v1.2.3": false,
	} {
		if err := Valid(text); (err == nil) != valid {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestLatestGoesByNumbers(t *testing.T) {
	if got := Latest([]string{"v0.9.0", "v0.10.0", "v0.2.11", "v1.0.0-rc.1", "old"}); got != "v0.10.0" {
		t.Errorf("the latest is %q", got)
	}
	if got := Latest(nil); got != "" {
		t.Errorf("the latest of none is %q", got)
	}
}

func TestAfter(t *testing.T) {
	for name, row := range map[string]struct{ version, last, says string }{
		"the first":         {"v0.1.0", "", ""},
		"a greater patch":   {"v0.9.10", "v0.9.9", ""},
		"a major":           {"v1.0.0", "v0.9.9", ""},
		"the same":          {"v0.9.9", "v0.9.9", "v0.9.10"},
		"a smaller":         {"v0.9.9", "v0.10.0", "v0.10.1"},
		"no version at all": {"0.9.9", "", "vX.Y.Z"},
	} {
		err := After(row.version, row.last)
		if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNext(t *testing.T) {
	for _, row := range []struct {
		last string
		step Step
		want string
	}{
		{"", Patch, "v0.1.0"},
		{"", Minor, "v0.1.0"},
		{"v0.1.9", Patch, "v0.1.10"},
		{"v0.1.9", Minor, "v0.2.0"},
		{"v3.9.1", Minor, "v3.10.0"},
	} {
		if got := Next(row.last, row.step); got != row.want {
			t.Errorf("after %q comes %s, want %s", row.last, got, row.want)
		}
	}
}
