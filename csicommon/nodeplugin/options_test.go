package nodeplugin

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
)

func newFlags(o *Options) *flag.FlagSet {
	flags := flag.NewFlagSet("program serve", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.Register(flags, Own{Store: "/var/lib/store", Keeps: "things", HTTP: ":1"})
	return flags
}

func TestOptions(t *testing.T) {
	here := t.TempDir()
	for _, row := range []struct {
		name      string
		arguments string
		want      string // Of the error; empty: there is none.
	}{
		{"all that is needed", "--node-id n", ""},
		{"an adopted store", "--node-id n --kubeconfig k --adopt-store", ""},
		{"no node", "", "--node-id is missing"},
		{"a relative store", "--node-id n --store s", `--store "s" is not absolute`},
		{"standalone with a cluster", "--node-id n --standalone --kubeconfig k", "--standalone and --kubeconfig exclude each other"},
		{"standalone with an adopted store", "--node-id n --standalone --adopt-store", "--standalone and --adopt-store exclude each other"},
		{"a relative kubelet directory", "--node-id n --kubelet-dir .", "is not absolute"},
		{"no kubelet directory", "--node-id n --kubelet-dir /nonexistent", "no such file"},
		{"a file for the kubelet's directory", "--node-id n --kubelet-dir /proc/self/status", "not a directory"},
		{"an unknown flag", "--nod n", "-nod; program serve --help lists the flags"},
		{"a stray word", "--node-id n word", `unexpected argument "word": program serve takes flags only`},
	} {
		t.Run(row.name, func(t *testing.T) {
			var o Options
			arguments := append([]string{"--kubelet-dir", here}, strings.Fields(row.arguments)...)
			err := Parse(newFlags(&o), arguments)
			if err == nil {
				err = o.Check()
			}
			switch {
			case row.want == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
				t.Errorf("error %v, want %q in it", err, row.want)
			}
		})
	}
	if err := Parse(newFlags(&Options{}), []string{"-h"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

func TestFlagsText(t *testing.T) {
	text := FlagsText(newFlags(&Options{}))
	for _, want := range []string{
		"  --store directory\n        directory the things are kept in (default /var/lib/store)\n",
		"  --node-id name\n        name of this node, required\n",
		"  --standalone \n        run without an API server",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "default false") {
		t.Errorf("a switch has a default:\n%s", text)
	}
}
