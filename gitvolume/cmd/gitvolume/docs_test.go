package main

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"liken.sh/csicommon/event"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/report"
)

const (
	watchPage    = "../../docs/reference/watch.md"
	nodePage     = "../../docs/reference/node.md"
	controlPage  = "../../docs/reference/controller.md"
	tutorialPage = "../../docs/tutorial/watch.md"
)

func readPage(t *testing.T, file string) string {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestThePagesListEveryFlagWithItsDefault(t *testing.T) {
	for page, flags := range map[string]*flag.FlagSet{
		watchPage: newFlags(&options{}), nodePage: newNodeFlags(&nodeOptions{}), controlPage: newControllerFlags(&controllerOptions{}),
	} {
		documented := map[string]string{}
		row := regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| (?:`([^`]*)`|none) \\| .+ \\|$")
		for _, match := range row.FindAllStringSubmatch(readPage(t, page), -1) {
			documented[match[1]] = match[2]
		}
		flags.VisitAll(func(f *flag.Flag) {
			value, found := documented[f.Name]
			switch {
			case !found:
				t.Errorf("%s: --%s has no row", page, f.Name)
			case value != f.DefValue:
				t.Errorf("%s: --%s has the default %q, the page says %q", page, f.Name, f.DefValue, value)
			}
			delete(documented, f.Name)
		})
		for name := range documented {
			t.Errorf("%s: --%s has a row and is no flag", page, name)
		}
	}
}

// Each Event that a volume without Kubernetes can make has its line on the page.
func TestThePageListsEveryLine(t *testing.T) {
	page := readPage(t, watchPage)
	reasons := regexp.MustCompile("(?m)^\\| `(GitVolume\\w+)`").FindAllStringSubmatch(readPage(t, "../../docs/reference/events.md"), -1)
	if len(reasons) < 16 {
		t.Fatalf("the page of Events has %d", len(reasons))
	}
	for _, reason := range reasons {
		switch reason[1] {
		case "GitVolumeRefused", string(report.NoPublishSecret): // They are about pods.
			continue
		}
		var out strings.Builder
		report.NewPrinter(&out).Post(event.Object{}, "", reason[1], "m")
		_, line, _ := strings.Cut(strings.TrimSuffix(out.String(), ": m\n"), " ")
		if !strings.Contains(page, "| `"+line+"` |") {
			t.Errorf("%s is printed as %q, which has no row", reason[1], line)
		}
	}
}

var tutorialPart = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$|^<!-- wait: (.*?) -->$")

// The tutorial's commands are run as a reader runs them, one terminal for what is watched.
func TestTutorial(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	key := gittest.NewKey(t, "ed25519")
	server := gittest.StartSSHD(t, gittest.SSHDOptions{AuthorizedKeys: []string{key.Authorized}})
	var watching *process
	end := func() {
		if watching != nil {
			watching.stop(0)
		}
	}
	parts := tutorialPart.FindAllStringSubmatch(readPage(t, tutorialPage), -1)
	if len(parts) < 10 {
		t.Fatalf("the tutorial has %d parts", len(parts))
	}
	url := ""
	for _, part := range parts {
		commands, line := part[1], part[2]
		before, watch, isWatch := strings.Cut(commands, "gitvolume watch ")
		switch {
		case line != "":
			watching.awaits(line, 1)
			watching.forget()
		case strings.HasPrefix(commands, "URL="):
			url = server.URL(h.remote.Dir)
		case strings.HasPrefix(commands, "ssh-keygen"):
			h.shell(commands)
			// The server lets in the key that it knows.
			h.write("notes-key", key.PEM)
		case isWatch:
			end()
			h.shell(before)
			arguments := strings.Fields(strings.ReplaceAll(watch, `"$URL"`, url))
			watching = h.start(append([]string{"watch"}, arguments...)...)
		default:
			h.shell(commands)
		}
	}
	end()
	if files := h.remote.Git("ls-tree", "--name-only", "main"); files != "list" {
		t.Errorf("the remote has %q", files)
	}
}

// shell runs commands in the home.
func (h *home) shell(commands string) {
	h.t.Helper()
	cmd := exec.Command("bash", "-euc", commands)
	cmd.Dir = h.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("%s: %v: %s", commands, err, out)
	}
}
