package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// delivery is a request as a forge makes it.
type delivery struct {
	header http.Header
	body   []byte
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func sum(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// deliver makes the request of a forge, with the headers that it sends.
func deliver(forge, event, secret string, body []byte) delivery {
	d := delivery{header: http.Header{}, body: body}
	d.header.Set("Content-Type", "application/json")
	set := func(pairs ...string) {
		for i := 0; i < len(pairs); i += 2 {
			d.header.Set(pairs[i], pairs[i+1])
		}
	}
	signature := sum(secret, body)
	switch forge {
	case "github":
		set("User-Agent", "GitHub-Hookshot/044aadd", "X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958", "X-GitHub-Event", event,
			"X-GitHub-Hook-ID", "292430182", "X-Hub-Signature", "sha1=7d38cdd689735b008b3c702edd92eea23791c5f6", "X-Hub-Signature-256", "sha256="+signature)
	case "gitlab":
		set("User-Agent", "GitLab/17.1.0-pre", "X-Gitlab-Event", event, "X-Gitlab-Instance", "https://gitlab.example.com",
			"X-Gitlab-Event-UUID", "13792a34-cac6-4fda-95a8-c58e00a3954e", "X-Gitlab-Token", secret)
	case "gitea", "forgejo":
		set("X-GitHub-Delivery", "f6266f16", "X-GitHub-Event", event, "X-GitHub-Event-Type", event, "X-Gogs-Event", event, "X-Gogs-Signature", signature,
			"X-Gitea-Delivery", "f6266f16", "X-Gitea-Event", event, "X-Gitea-Event-Type", event, "X-Gitea-Signature", signature,
			"X-Hub-Signature", "sha1=7d38cdd689735b008b3c702edd92eea23791c5f6", "X-Hub-Signature-256", "sha256="+signature)
		if forge == "forgejo" {
			set("X-Forgejo-Delivery", "f6266f16", "X-Forgejo-Event", event, "X-Forgejo-Event-Type", event, "X-Forgejo-Signature", signature)
		}
	}
	return d
}

// asForm is the delivery as application/x-www-form-urlencoded, which GitHub has as its
// default.
func asForm(forge, event, secret string, body []byte) delivery {
	d := deliver(forge, event, secret, []byte(url.Values{"payload": {string(body)}}.Encode()))
	d.header.Set("Content-Type", "application/x-www-form-urlencoded")
	return d
}

func isSigned(header http.Header, body, secret []byte) bool {
	return unverified{signature: signatureOf(header), body: body}.isSigned(secret)
}

func TestParsePush(t *testing.T) {
	for name, row := range map[string]struct {
		d            delivery
		repositories []string
		ref          string
	}{
		"GitHub":             {deliver("github", "push", "s", fixture(t, "github-push")), []string{"github.com/shop/config"}, "refs/heads/main"},
		"GitHub as a form":   {asForm("github", "push", "s", fixture(t, "github-push")), []string{"github.com/shop/config"}, "refs/heads/main"},
		"GitLab":             {deliver("gitlab", "Push Hook", "s", fixture(t, "gitlab-push")), []string{"gitlab.example.com/shop/backend/config", "ssh.gitlab.example.com/shop/backend/config"}, "refs/heads/main"},
		"GitLab's tag":       {deliver("gitlab", "Tag Push Hook", "s", fixture(t, "gitlab-tag")), []string{"gitlab.example.com/shop/backend/config", "ssh.gitlab.example.com/shop/backend/config"}, "refs/tags/v1.0.0"},
		"GitLab's system":    {deliver("gitlab", "System Hook", "s", fixture(t, "gitlab-push")), []string{"gitlab.example.com/shop/backend/config", "ssh.gitlab.example.com/shop/backend/config"}, "refs/heads/main"},
		"Gitea, not its own": {deliver("gitea", "push", "s", fixture(t, "gitea-push")), []string{"gitea.example.com/shop/config"}, "refs/heads/develop"},
		"Forgejo":            {deliver("forgejo", "push", "s", fixture(t, "forgejo-push")), []string{"codeberg.example/shop/config"}, "refs/heads/main"},
		"Forgejo as a form":  {asForm("forgejo", "push", "s", fixture(t, "forgejo-push")), []string{"codeberg.example/shop/config"}, "refs/heads/main"},
		"a form with more":   {formOf("a=%7B&b&payload=" + url.QueryEscape(string(fixture(t, "github-push"))) + "&c=d"), []string{"github.com/shop/config"}, "refs/heads/main"},
		"JSON called a form": {formOf(string(fixture(t, "github-push"))), []string{"github.com/shop/config"}, "refs/heads/main"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parsePush(row.d.header, bytes.NewReader(row.d.body))
			slices.Sort(got.repositories)
			if err != nil || !slices.Equal(got.repositories, row.repositories) || got.ref != row.ref {
				t.Errorf("%+v, %v, want %v and %v", got, err, row.repositories, row.ref)
			}
			if !isSigned(row.d.header, row.d.body, []byte("s")) {
				t.Error("its signature is not recognized")
			}
		})
	}
}

func TestNoPush(t *testing.T) {
	pushed := string(fixture(t, "github-push"))
	edited := func(from, to string) []byte { return []byte(strings.ReplaceAll(pushed, from, to)) }
	for name, row := range map[string]struct {
		d    delivery
		says string
	}{
		"a ping":              {deliver("github", "ping", "s", fixture(t, "github-ping")), `the event "ping"`},
		"a new branch":        {deliver("gitea", "create", "s", fixture(t, "gitea-push")), `the event "create"`},
		"a merge request":     {deliver("gitlab", "Merge Request Hook", "s", fixture(t, "gitlab-push")), `"Merge Request Hook"`},
		"a system's project":  {deliver("gitlab", "System Hook", "s", []byte(`{"event_name":"project_create"}`)), `"project_create"`},
		"no event":            {deliver("nobody", "", "s", []byte(pushed)), "no header names the event"},
		"no JSON":             {deliver("github", "push", "s", []byte("push")), "cannot be read"},
		"half of it":          {deliver("github", "push", "s", []byte(pushed[:500])), "cannot be read"},
		"an array":            {deliver("github", "push", "s", []byte("[]")), "cannot be read"},
		"nothing":             {deliver("github", "push", "s", nil), "cannot be read"},
		"another form":        {asForm("github", "push", "s", nil), "cannot be read"},
		"a form of nothing":   {formOf("a=b&payloads=c&payload"), "neither JSON nor a form"},
		"half a form":         {formOf("payload=%7"), "ends in an escape"},
		"a broken form":       {formOf("%zz"), "cannot be read"},
		"a short ref":         {deliver("github", "push", "s", edited("refs/heads/main", "main")), `"main"`},
		"no repository":       {deliver("github", "push", "s", []byte(`{"ref":"refs/heads/main"}`)), "no URL"},
		"URLs that are none":  {deliver("github", "push", "s", []byte(`{"ref":"refs/heads/main","repository":{"clone_url":"-x","ssh_url":"https://u:p@h/r"}}`)), "no URL"},
		"a number for a name": {deliver("github", "push", "s", []byte(`{"ref":7}`)), "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parsePush(row.d.header, bytes.NewReader(row.d.body))
			if !errors.Is(err, errNotPush) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%+v, %v, want %q", got, err, row.says)
			}
		})
	}
}

// formOf is a delivery that says it is a form and has this body.
func formOf(body string) delivery {
	d := deliver("github", "push", "s", []byte(body))
	d.header.Set("Content-Type", "application/x-www-form-urlencoded")
	return d
}

func TestSignatures(t *testing.T) {
	// The example of GitHub's documentation.
	const secret, body = "It's a Secret to Everybody", "Hello, World!"
	const documented = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	for name, row := range map[string]struct {
		header, value string
		isSigned      bool
	}{
		"GitHub":                  {"X-Hub-Signature-256", "sha256=" + documented, true},
		"Gitea":                   {"X-Gitea-Signature", documented, true},
		"Forgejo":                 {"X-Forgejo-Signature", documented, true},
		"GitLab":                  {"X-Gitlab-Token", secret, true},
		"of another body":         {"X-Hub-Signature-256", "sha256=" + sum(secret, []byte("Hello, World?")), false},
		"of another secret":       {"X-Hub-Signature-256", "sha256=" + sum("secret", []byte(body)), false},
		"of an empty secret":      {"X-Hub-Signature-256", "sha256=" + sum("", []byte(body)), false},
		"half of it":              {"X-Hub-Signature-256", "sha256=" + documented[:32], false},
		"an odd digit":            {"X-Gitea-Signature", documented[:63], false},
		"no digits":               {"X-Gitea-Signature", "sha256", false},
		"an empty one":            {"X-Gitea-Signature", "", false},
		"SHA-1":                   {"X-Hub-Signature", "sha1=" + documented, false},
		"a token that goes on":    {"X-Gitlab-Token", secret + "!", false},
		"a token that ends early": {"X-Gitlab-Token", secret[:5], false},
		"an empty token":          {"X-Gitlab-Token", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			header.Set(row.header, row.value)
			if got := isSigned(header, []byte(body), []byte(secret)); got != row.isSigned {
				t.Errorf("signed is %v, want %v", got, row.isSigned)
			}
		})
	}
	if isSigned(http.Header{}, []byte(body), []byte(secret)) {
		t.Error("a request without a header is signed")
	}
}

// Whatever is sent, a push that is read has a full ref and a repository.
func FuzzParsePush(f *testing.F) {
	for _, name := range []string{"github-push", "gitlab-push", "gitea-push", "forgejo-push", "github-ping"} {
		f.Add("push", "application/json", fixture(f, name))
	}
	f.Add("push", "application/x-www-form-urlencoded", []byte("payload=%7B%22ref%22%3A%22refs%2Fheads%2Fmain%22%7D"))
	f.Fuzz(func(t *testing.T, event, kind string, body []byte) {
		header := http.Header{"X-Github-Event": {event}, "Content-Type": {kind}}
		p, err := parsePush(header, bytes.NewReader(body))
		switch {
		case err != nil && !errors.Is(err, errNotPush):
			t.Errorf("the error is %v", err)
		case err == nil && (!strings.HasPrefix(p.ref, "refs/") || len(p.repositories) == 0):
			t.Errorf("the push is %+v", p)
		}
	})
}
