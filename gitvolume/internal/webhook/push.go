package webhook

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"liken.sh/csicommon/quote"
	"liken.sh/gitvolume/internal/attributes"
)

// errNotPush is wrapped by the reasons why a signed request moves no volume.
var errNotPush = errors.New("this is no push")

// push is what a forge tells of one.
type push struct {
	// repositories are the spellings of the one repository's name, as repositoryOf makes
	// them.
	repositories []string
	// ref is the full name of the branch or tag that was pushed.
	ref string
}

// payload is the part of a forge's request that is read. GitHub, Gitea and Forgejo name
// the repository, GitLab the project.
type payload struct {
	objectKind string // GitLab's
	eventName  string // of GitLab's system hooks
	ref        string
	repository struct{ cloneURL, sshURL, gitURL, htmlURL string }
	project    struct{ gitHTTPURL, gitSSHURL, webURL string }
}

// wanted names what is kept of the JSON, and where it goes.
func (p *payload) wanted() *wanted {
	text := func(to *string) *wanted { return &wanted{text: to} }
	return &wanted{members: map[string]*wanted{
		"object_kind": text(&p.objectKind),
		"event_name":  text(&p.eventName),
		"ref":         text(&p.ref),
		"repository": {members: map[string]*wanted{
			"clone_url": text(&p.repository.cloneURL),
			"ssh_url":   text(&p.repository.sshURL),
			"git_url":   text(&p.repository.gitURL),
			"html_url":  text(&p.repository.htmlURL),
		}},
		"project": {members: map[string]*wanted{
			"git_http_url": text(&p.project.gitHTTPURL),
			"git_ssh_url":  text(&p.project.gitSSHURL),
			"web_url":      text(&p.project.webURL),
		}},
	}}
}

// parsePush reads a request as it comes. An error wraps errNotPush, and its words are for the
// sender of one that is signed.
func parsePush(header http.Header, body io.Reader) (push, error) {
	var p payload
	in, err := payloadOf(header, body)
	if err == nil {
		err = scanObject(in, p.wanted())
	}
	if err != nil {
		return push{}, fmt.Errorf("%w: its payload cannot be read: %w", errNotPush, err)
	}
	switch event := eventOf(header, p); {
	case event == "":
		return push{}, fmt.Errorf("%w: no header names the event", errNotPush)
	case event != eventPush:
		return push{}, fmt.Errorf("%w but the event %s; the signature is right", errNotPush, quote.Value(event))
	}
	if !strings.HasPrefix(p.ref, "refs/") {
		return push{}, fmt.Errorf("%w: its ref %s is no full name of a branch or a tag", errNotPush, quote.Value(p.ref))
	}
	found := push{ref: p.ref}
	for _, text := range []string{
		p.repository.cloneURL, p.repository.sshURL, p.repository.gitURL, p.repository.htmlURL,
		p.project.gitHTTPURL, p.project.gitSSHURL, p.project.webURL,
	} {
		address, err := attributes.ParseURL(text)
		if err != nil {
			continue // A forge that is reached one way only leaves the others empty.
		}
		if name := repositoryOf(address); !slices.Contains(found.repositories, name) {
			found.repositories = append(found.repositories, name)
		}
	}
	if len(found.repositories) == 0 {
		return push{}, fmt.Errorf("%w: its payload has no URL of a repository", errNotPush)
	}
	return found, nil
}

// eventPush stands for each forge's name of a push, of a branch or a tag.
const eventPush = "push"

// eventOf names what a request tells of, empty where nothing says it.
func eventOf(header http.Header, p payload) string {
	switch event := header.Get("X-Gitlab-Event"); event {
	case "":
		return cmp.Or(header.Get("X-Forgejo-Event"), header.Get("X-Gitea-Event"), header.Get("X-GitHub-Event"))
	case "Push Hook", "Tag Push Hook":
		return eventPush
	case "System Hook":
		// Its kind is in the body, and a push has one of these.
		kind := cmp.Or(p.objectKind, p.eventName)
		if kind == "tag_push" {
			return eventPush
		}
		return kind
	default:
		return event
	}
}

// repositoryOf names a repository whatever its URL's scheme, user, port, final ".git" and
// case: forges take owners and repositories of any case for the same.
func repositoryOf(address attributes.URL) string { return strings.ToLower(address.Identity()) }
