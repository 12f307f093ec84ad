package podinfo_test

import (
	"testing"

	"liken.sh/csicommon/podinfo"
)

func TestOf(t *testing.T) {
	for name, row := range map[string]struct {
		context map[string]string
		known   bool
		inline  bool
	}{
		"no kubelet":     {nil, false, false},
		"a name alone":   {map[string]string{podinfo.KeyName: "db-0"}, false, false},
		"without an UID": {map[string]string{podinfo.KeyName: "db-0", podinfo.KeyNamespace: "apps"}, true, false},
		"of a claim":     {map[string]string{podinfo.KeyName: "db-0", podinfo.KeyNamespace: "apps", podinfo.KeyEphemeral: "false"}, true, false},
		"inline":         {map[string]string{podinfo.KeyName: "db-0", podinfo.KeyNamespace: "apps", podinfo.KeyEphemeral: "true"}, true, true},
	} {
		if _, known := podinfo.Of(row.context); known != row.known {
			t.Errorf("%s: known is %t", name, known)
		}
		if inline := podinfo.IsInline(row.context); inline != row.inline {
			t.Errorf("%s: inline is %t", name, inline)
		}
	}
}
