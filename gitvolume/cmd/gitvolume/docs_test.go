package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"liken.sh/csicommon/csitest/page"
	"liken.sh/csicommon/event"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/report"
)

const (
	watchPage    = "../../docs/reference/watch.md"
	nodePage     = "../../docs/reference/node.md"
	controlPage  = "../../docs/reference/controller.md"
	tutorialPage = "../../docs/tutorial/watch.md"
	backupPage   = "../../docs/guides/backup.md"
)

func TestThePagesListEveryFlagWithItsDefault(t *testing.T) {
	page.CompareFlags(t, watchPage, newFlags(&options{}))
	page.CompareFlags(t, nodePage, newNodeFlags(&nodeOptions{}))
	page.CompareFlags(t, controlPage, newControllerFlags(&controllerOptions{}))
}

// Each Event that a volume without Kubernetes can make has its line on the page.
func TestThePageListsEveryLine(t *testing.T) {
	text := page.Read(t, watchPage)
	reasons := regexp.MustCompile("(?m)^\\| `(GitVolume\\w+)`").FindAllStringSubmatch(page.Read(t, "../../docs/reference/events.md"), -1)
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
		if !strings.Contains(text, "| `"+line+"` |") {
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
	var watching *running
	end := func() {
		if watching != nil {
			watching.stop(0)
		}
	}
	parts := tutorialPart.FindAllStringSubmatch(page.Read(t, tutorialPage), -1)
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

var positionLine = regexp.MustCompile("(?m)/record\\.json: *\"([a-z]+)\": \"([0-9a-f]+)\",?$")

// What a node has that the remote has not is found, and got out, by the page's commands.
func TestCommitsComeOutOfAStore(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.remote.Grow("main", "a", "1")
	p := h.watch("d", "--class", h.fast())
	p.awaits("armed: class fast", 1)
	h.write("d/b", "written")
	away := h.remote.Dir + ".away"
	if err := os.Rename(h.remote.Dir, away); err != nil {
		t.Fatal(err)
	}
	p.stop(exitFailed)
	if err := os.Rename(away, h.remote.Dir); err != nil {
		t.Fatal(err)
	}
	stores, err := filepath.Glob(h.path("state/gitvolume/*"))
	if err != nil || len(stores) != 1 {
		t.Fatalf("the stores are %q, %v", stores, err)
	}
	volumes, err := os.ReadDir(filepath.Join(stores[0], "volumes"))
	if err != nil || len(volumes) != 1 {
		t.Fatalf("the volumes are %v, %v", volumes, err)
	}
	handle := volumes[0].Name()
	h.write("d/c", "not committed")
	// A watch has no tree in its store: it is the user's directory.
	h.shell(fmt.Sprintf("cp -a d %q", filepath.Join(stores[0], "volumes", handle, "tree")))

	text := page.Read(t, backupPage)
	blocks := func(heading string) string {
		_, section, found := strings.Cut(text, "\n## "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		var all strings.Builder
		for _, block := range tutorialPart.FindAllStringSubmatch(section, -1) {
			all.WriteString(block[1])
		}
		if !found || all.Len() == 0 {
			t.Fatalf("the page has no commands below %q", heading)
		}
		return all.String()
	}
	values := fmt.Sprintf("store=%q handle=%q url=%q\n", stores[0], handle, h.remote.Dir)
	position := func() map[string]string {
		found := map[string]string{}
		for _, match := range positionLine.FindAllStringSubmatch(h.prints(values+blocks("What is on a node alone")), -1) {
			found[match[1]] = match[2]
		}
		return found
	}
	if is := position(); is["tip"] == "" || is["base"] == "" || is["tip"] == is["base"] || is["tip"] == is["side"] {
		t.Errorf("what was not pushed is shown as %q", is)
	}
	said := h.prints(values + blocks("Commits of a node that does not come back") + "true\n")
	if !strings.Contains(said, "Update b") || !strings.Contains(said, "tree: c\n") {
		t.Errorf("the commands print\n%s", said)
	}
	if got := h.remote.Git("show", "rescued:b"); got != "written" {
		t.Errorf("the remote has %q", got)
	}

	p = h.watch("d", "--class", h.fast())
	p.awaits("armed: class fast", 1)
	p.stop(0)
	if is := position(); is["tip"] == "" || is["tip"] != is["base"] {
		t.Errorf("what was pushed is shown as %q", is)
	}
}

// prints is what commands print that a person tries, and that may end with a difference.
func (h *home) prints(commands string) string {
	h.t.Helper()
	cmd := exec.Command("bash", "-uc", commands)
	cmd.Dir = h.dir
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("%s: %v: %s", commands, err, out)
	}
	return string(out)
}
