package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

// refusal is a command line, and what is said to it.
type refusal struct {
	// arguments follow "watch", unless they say the command.
	arguments func(h *home) []string
	want      []string
}

func commandLines() map[string]refusal {
	return map[string]refusal{
		"no command":           {words("gitvolume"), []string{"watch DIR --url URL", "--help"}},
		"a command of nobody":  {words("gitvolume", "operator"), []string{`"operator"`, "there are controller, node, uninstall-check and watch"}},
		"a flag as command":    {words("gitvolume", "--url", "x"), []string{`"--url"`, "there are controller, node, uninstall-check and watch"}},
		"nothing to watch":     {words("--url", "x"), []string{"which directory", "DIR"}},
		"an unknown flag":      {words("d", "--uri", "x"), []string{": --uri; ", "--help"}},
		"a flag without value": {words("d", "--url"), []string{": --url; ", "--help"}},
		"two directories":      {words("d", "e", "--url", "x"), []string{`"d"`, `"e"`, "of its own"}},
		"an address alone":     {words("d", "https://me:secret@localhost/r"), []string{`"https://***@localhost/r" is an address`, "write --url before it"}},
		"an address of ssh":    {words("d", "git@localhost:r"), []string{`"git@localhost:r" is an address`, "write --url before it"}},
		"a quoted ~":           {words("~/notes", "--url", "x"), []string{`"~/notes"`, "$HOME"}},
		"an empty name":        {words("", "--url", "x"), []string{"name one"}},
		"no URL":               {words("d"), []string{"--url is missing", "ssh://"}},
		"no ref":               {words("d", "--url", "x", "--ref", ""), []string{"--ref is empty", "main"}},
		"all of the machine":   {local("/"), []string{`"/"`, "a directory in it"}},
		"scans without end":    {words("d", "--url", "x", "--scan-every", "0s"), []string{"--scan-every", "5m"}},
		"a time without unit":  {words("d", "--url", "x", "--scan-every", "5"), []string{`"5"`, "for flag --scan-every: ", "give a time such as 5m"}},
		"a yes that is none":   {words("d", "--url", "x", "--allow-insecure=j"), []string{`"j"`, "for --allow-insecure: "}},
		"a push of the past":   {words("d", "--url", "x", "--stop-push-timeout", "-1s"), []string{"--stop-push-timeout", "30s"}},
		"a loud log":           {local("d", "--log-level", "loud"), []string{"--log-level", `"loud"`, "debug, info, warn and error"}},
	}
}

func secrets(key gittest.Key) map[string]refusal {
	return map[string]refusal{
		"key and token": {words("d", "--url", "x", "--ssh-key", "a", "--token-file", "b"),
			[]string{"--ssh-key and --token-file", "exclude each other"}},
		"known hosts without a key":   {words("d", "--url", "x", "--known-hosts", "a"), []string{"--known-hosts", "--ssh-key"}},
		"a CA without a token":        {words("d", "--url", "x", "--ca", "a"), []string{"--ca", "--token-file"}},
		"ssh without a key":           {words("d", "--url", "git@localhost:r"), []string{"--ssh-key FILE", "passphrase"}},
		"ssh with a token":            {words("d", "--url", "git@localhost:r", "--token-file", "a"), []string{"takes --ssh-key", "https://"}},
		"https with a key":            {words("d", "--url", "https://localhost/r", "--ssh-key", "a"), []string{"takes --token-file", "ssh://"}},
		"a token for all to read":     {words("d", "--url", "http://localhost/r", "--token-file", "a"), []string{"http://", "https://", "--allow-insecure"}},
		"a key for files":             {local("d", "--ssh-key", "a"), []string{"directory of this machine", "neither"}},
		"a key that is not there":     {words("d", "--url", "git@localhost:r", "--ssh-key", "nowhere"), []string{"--ssh-key nowhere: ", "no such file", "give the one with the private key"}},
		"a key that is a directory":   {words("d", "--url", "git@localhost:r", "--ssh-key", "/"), []string{"--ssh-key", "is a directory"}},
		"a public key":                {withKey("id", key.Authorized), []string{"--ssh-key: ", "public key", "private one"}},
		"no key at all":               {withKey("id", "hello\n"), []string{"--ssh-key: ", "BEGIN OPENSSH PRIVATE KEY"}},
		"a key among the known hosts": {keyAsKnownHosts(key), []string{"--known-hosts: ", "private key"}},
		"a key without end":           {withKey("id", strings.Repeat("x", longestSecret+1)), []string{"--ssh-key", "more than"}},
		"an empty token":              {withToken(""), []string{"--token-file is empty"}},
		"a token of two lines":        {withToken("a\nb\n"), []string{"--token-file has a line break"}},
		"certificates that are none":  {withToken("a", "--ca", "/dev/null"), []string{"--ca: "}},
	}
}

func places() map[string]refusal {
	return map[string]refusal{
		"a URL with a password":        {words("d", "--url", "https://me:secret@localhost/r"), []string{"--url: ", "***", "belongs in a file, which --token-file names"}},
		"a URL with a query":           {words("d", "--url", "https://localhost/r?token=x"), []string{"--url: ", "belongs in a file, which --token-file names"}},
		"a password over ssh":          {words("d", "--url", "ssh://me:secret@localhost/r"), []string{"--url: ", "***", "a file, which --ssh-key names"}},
		"a part of a path":             {words("d", "--url", "notes.git", "--allow-local-urls"), []string{"--url: ", `"notes.git"`, "write its path from the root on, https://"}},
		"a URL of a remote helper":     {words("d", "--url", "ext::sh -c date"), []string{"--url: "}},
		"files without leave":          {words("d", "--url", "/srv/r.git"), []string{"--url: ", "directory of this machine", "--allow-local-urls"}},
		"git's own protocol":           {words("d", "--url", "git://localhost/r"), []string{"--url: ", "can only be read"}},
		"a tag":                        {local("d", "--ref", "refs/tags/v1"), []string{"--ref: "}},
		"a ref that is none":           {local("d", "--ref", "a..b"), []string{"--ref: ", `"a..b"`}},
		"a ref that leaves no side":    {local("d", "--ref", strings.Repeat("r", 240)), []string{"--ref: "}},
		"a class that is not there":    {local("d", "--class", "nowhere.yaml"), []string{"--class nowhere.yaml: ", "no such file", "give the one with the VolumeAttributesClass"}},
		"a class that is no class":     {withClass("kind: Pod\napiVersion: v1\n"), []string{"--class", `"Pod"`, "VolumeAttributesClass"}},
		"a class of another driver":    {withClass(strings.Replace(fastClass, "git.liken.sh", "x.example", 1)), []string{"--class", `"x.example"`, `"git.liken.sh"`}},
		"a class with a bad value":     {withClass(strings.Replace(fastClass, "5s", "1s", 1)), []string{"--class", "class fast", "push.quiesce", `"1s"`, "5s or more"}},
		"a class that is no YAML":      {withClass("{"), []string{"--class", "no YAML"}},
		"a file":                       {fileAsDirectory, []string{"is not a directory"}},
		"a directory below a file":     {local("/proc/self/status/d"), []string{"not a directory"}},
		"a link to nothing":            {danglingLink, []string{"is a link to something that is not there"}},
		"a directory that has files":   {fullDirectory("x"), []string{"is not empty", "knows nothing of it", "move the files there afterwards"}},
		"a checkout":                   {fullDirectory(".git"), []string{"checkout of git's own", "empty directory"}},
		"a store in the directory":     {storeAt("d/store"), []string{"in the watched directory", "elsewhere"}},
		"the directory as store":       {storeAt("d"), []string{"--store is the watched directory itself"}},
		"the directory in the store":   {storeAt("."), []string{"is in the store", "elsewhere"}},
		"a store that is full":         {fullStore, []string{"--store", "choose an empty directory"}},
		"a store of a cluster":         {clusterStore, []string{"--store", "Kubernetes"}},
		"nowhere to keep a store":      {local("d", "--store", "/proc/store"), []string{"--store", "/proc/store"}},
		"a remote that is not there":   {words("d", "--allow-local-urls", "--url", "/nowhere/r.git"), []string{"git said", "nowhere/r.git"}},
		"a branch that is not there":   {grown("--ref", "mian"), []string{"--ref: ", `"refs/heads/mian"`, `there are "main"`}},
		"a tag by its short name":      {tagged, []string{"--ref: ", "that is the name of a tag, and a branch is wanted", `there are "main"`}},
		"a directory in two processes": {watchedTwice, []string{"another gitvolume watches", "stop that one first"}},
	}
}

// What cannot work says in one line what is wrong and what would be right, changes
// nothing, and ends with a code of its own.
func TestRefusals(t *testing.T) {
	rows := commandLines()
	maps.Copy(rows, secrets(gittest.NewKey(t, "ed25519")))
	maps.Copy(rows, places())
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			arguments := row.arguments(h)
			if len(arguments) > 0 && arguments[0] == "gitvolume" {
				arguments = arguments[1:]
			} else {
				arguments = append([]string{"watch"}, arguments...)
			}
			h.start(arguments...).refused(row.want...)
		})
	}
}

func words(arguments ...string) func(*home) []string {
	return func(*home) []string { return arguments }
}

func local(dir string, more ...string) func(*home) []string {
	return func(h *home) []string {
		return append([]string{dir, "--url", h.remote.Dir, "--allow-local-urls"}, more...)
	}
}

func withKey(name, content string) func(*home) []string {
	return func(h *home) []string {
		return []string{"d", "--url", "git@localhost:r", "--ssh-key", h.write(name, content)}
	}
}

func keyAsKnownHosts(key gittest.Key) func(*home) []string {
	return func(h *home) []string {
		return append(withKey("id", key.PEM)(h), "--known-hosts", h.write("hosts", key.PEM))
	}
}

func withToken(content string, more ...string) func(*home) []string {
	return func(h *home) []string {
		return append([]string{"d", "--url", "https://localhost/r", "--token-file", h.write("token", content)}, more...)
	}
}

func withClass(text string) func(*home) []string {
	return func(h *home) []string { return local("d", "--class", h.write("class.yaml", text))(h) }
}

func fileAsDirectory(h *home) []string {
	h.write("d", "x")
	return local("d")(h)
}

func danglingLink(h *home) []string {
	if err := os.Symlink("nowhere", h.path("d")); err != nil {
		h.t.Fatal(err)
	}
	return local("d")(h)
}

func fullDirectory(name string) func(*home) []string {
	return func(h *home) []string {
		h.write("d/"+name, "mine")
		h.t.Cleanup(func() {
			if entries, err := os.ReadDir(h.path("d")); err != nil || len(entries) != 1 || h.read("d/"+name) != "mine" {
				h.t.Errorf("the directory was changed: %v, %v", entries, err)
			}
		})
		return local("d")(h)
	}
}

func storeAt(dir string) func(*home) []string {
	return func(h *home) []string { return local("d", "--store", h.path(dir))(h) }
}

func fullStore(h *home) []string {
	h.write("s/precious", "x")
	return storeAt("s")(h)
}

func clusterStore(h *home) []string {
	arguments := storeAt("s")(h)
	h.write("s/format", "1\n")
	h.write("s/cluster", "a6e5a8b0-0000-4000-8000-000000000000\n")
	return arguments
}

func grown(more ...string) func(*home) []string {
	return func(h *home) []string {
		h.remote.Grow("main", "a", "1")
		return local("d", more...)(h)
	}
}

func tagged(h *home) []string {
	h.remote.SetRef("refs/tags/v1", h.remote.Grow("main", "a", "1"))
	return local("d", "--ref", "v1")(h)
}

func watchedTwice(h *home) []string {
	first := h.watch("d")
	first.awaits("not armed", 1)
	return local(filepath.Join("..", filepath.Base(h.dir), "d"))(h)
}

// A machine without git is told so before anything is made on it.
func TestNoGit(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	cmd := h.command("watch", "d", "--url", h.remote.Dir, "--allow-local-urls")
	cmd.Env = append(cmd.Env, "PATH="+h.dir)
	h.run(cmd).refused("git is not on the PATH: install git")
	if entries, err := os.ReadDir(h.dir); err != nil || len(entries) > 0 {
		t.Errorf("it has made %v, %v", entries, err)
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for arguments, want := range map[string]string{
		"--help": "watch DIR --url URL", "-h": "--version", "help": "watch DIR", "--version": "gitvolume ",
		"watch --help": "--stop-push-timeout", "watch d -h": "Exit codes",
	} {
		p := h.start(strings.Fields(arguments)...)
		if code := p.Wait(); code != 0 {
			t.Errorf("%s: exit code %d, want 0", arguments, code)
		}
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("%s says %q, which lacks %q", arguments, p.out.String(), want)
		}
	}
}
