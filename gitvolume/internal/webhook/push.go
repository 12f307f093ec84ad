package webhook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
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
	ObjectKind string `json:"object_kind"` // GitLab's
	EventName  string `json:"event_name"`  // of GitLab's system hooks
	Ref        string `json:"ref"`
	Repository struct {
		CloneURL string `json:"clone_url"`
		SSHURL   string `json:"ssh_url"`
		GitURL   string `json:"git_url"`
		HTMLURL  string `json:"html_url"`
	} `json:"repository"`
	Project struct {
		GitHTTPURL string `json:"git_http_url"`
		GitSSHURL  string `json:"git_ssh_url"`
		WebURL     string `json:"web_url"`
	} `json:"project"`
}

// parsePush reads a request that is signed. An error wraps errNotPush, and its words are for
// the sender.
func parsePush(header http.Header, body []byte) (push, error) {
	var p payload
	if err := json.Unmarshal(payloadOf(header, body), &p); err != nil {
		return push{}, fmt.Errorf("%w: its payload cannot be read: %w", errNotPush, err)
	}
	switch event := eventOf(header, p); {
	case event == "":
		return push{}, fmt.Errorf("%w: no header names the event", errNotPush)
	case event != eventPush:
		return push{}, fmt.Errorf("%w but the event %s; the signature is right", errNotPush, quote.Value(event))
	}
	if !strings.HasPrefix(p.Ref, "refs/") {
		return push{}, fmt.Errorf("%w: its ref %s is no full name of a branch or a tag", errNotPush, quote.Value(p.Ref))
	}
	found := push{ref: p.Ref}
	for _, text := range []string{
		p.Repository.CloneURL, p.Repository.SSHURL, p.Repository.GitURL, p.Repository.HTMLURL,
		p.Project.GitHTTPURL, p.Project.GitSSHURL, p.Project.WebURL,
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

// payloadOf is the JSON of a request, which GitHub and Gitea can also send in a form, as its
// payload. What only says that it is a form, as curl and wget do of all that they post, is
// taken as it is.
func payloadOf(header http.Header, body []byte) []byte {
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if kind != "application/x-www-form-urlencoded" {
		return body
	}
	form, err := url.ParseQuery(string(body))
	if err != nil || !form.Has("payload") {
		return body
	}
	return []byte(form.Get("payload"))
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
		kind := cmp.Or(p.ObjectKind, p.EventName)
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
