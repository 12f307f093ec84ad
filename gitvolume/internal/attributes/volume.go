package attributes

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/quote"
)

// Kind is which of the three volumes attributes are of; the caller knows from the
// request.
type Kind int

// The kinds of volume.
const (
	KindInline Kind = iota
	KindReadOnlyClaim
	KindWriteable
)

// String is the kind in words.
func (k Kind) String() string {
	switch k {
	case KindInline:
		return "inline volume"
	case KindReadOnlyClaim:
		return "read-only claim"
	}
	return "writeable volume"
}

// Volume is what a volume's attributes say. It is comparable.
type Volume struct {
	URL     URL
	Ref     Ref
	Pull    Pull
	Offline Offline
	// Depth is how many commits are fetched; 0: all.
	Depth int
	// WebhookSecret names a Secret in the claim's namespace; empty: no webhook.
	WebhookSecret string
}

// Offline is what a volume does at its start when the remote cannot be reached.
type Offline string

// The values of offline.
const (
	OfflineRefuse     Offline = "refuse"
	OfflineAllowStale Offline = "allowStale"
)

// Pull is when a volume follows its ref.
type Pull struct {
	// Every is the time between two fetches; 0 when the volume does not fetch by itself.
	Every time.Duration
	// OnDemand tells that it fetches only when it is asked to. Neither: never.
	OnDemand bool
}

// IsNever tells whether the volume keeps the commit that it started with.
func (p Pull) IsNever() bool { return p == Pull{} }

// String is the pull as its attribute is written.
func (p Pull) String() string {
	switch {
	case p.OnDemand:
		return pullOnDemand
	case p.IsNever():
		return pullNever
	}
	return p.Every.String()
}

const (
	attributeURL           = "url"
	attributeRef           = "ref"
	attributePull          = "pull"
	attributeDepth         = "depth"
	attributeOffline       = "offline"
	attributeWebhookSecret = "webhookSecret"

	pullNever    = "never"
	pullOnDemand = "on-demand"

	defaultRef  = "main"
	defaultPull = 5 * time.Minute
	minPull     = time.Second

	// kubernetesPrefix is of the keys that the kubelet adds to the volume context.
	kubernetesPrefix = "csi.storage.k8s.io/"
)

// Rules are what a node's flags say about every volume.
type Rules struct {
	// Allow are the URLs that may be reached (--allow-url); none: all. They do not speak
	// about local ones.
	Allow []Pattern
	// Local lets URLs name directories of the machine (--allow-local-urls).
	Local bool
}

// Parse reads a volume context of a kind. The handle is the volume's, of which a
// writeable volume's side branch has its name. An error wraps ErrInvalid and names the
// attribute; of several, always the same one.
func (r Rules) Parse(kind Kind, context map[string]string, volumeHandle string) (Volume, error) {
	v := Volume{Ref: Ref{name: defaultRef}, Offline: OfflineRefuse}
	if kind != KindWriteable {
		v.Pull.Every = defaultPull
	}
	given := map[string]string{}
	for name, value := range context {
		if !strings.HasPrefix(name, kubernetesPrefix) {
			given[name] = value
		}
	}
	if err := checkNames(kind, given); err != nil {
		return Volume{}, err
	}
	if _, found := given[attributeURL]; !found {
		return Volume{}, fmt.Errorf("attribute %s is missing: write the address of a repository: %w", attributeURL, ErrInvalid)
	}
	if _, found := given[attributeRef]; !found {
		given[attributeRef] = defaultRef // its side branch may still be none
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := r.read(&v, kind, name, given[name], volumeHandle); err != nil {
			return Volume{}, fmt.Errorf("attribute %s: %w", name, err)
		}
	}
	return v, nil
}

func checkNames(kind Kind, given map[string]string) error {
	known := map[string][]Kind{
		attributeURL:           {KindInline, KindReadOnlyClaim, KindWriteable},
		attributeRef:           {KindInline, KindReadOnlyClaim, KindWriteable},
		attributePull:          {KindInline, KindReadOnlyClaim},
		attributeDepth:         {KindInline, KindReadOnlyClaim},
		attributeOffline:       {KindInline, KindReadOnlyClaim},
		attributeWebhookSecret: {KindReadOnlyClaim}, // the webhook looks for PersistentVolumes
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		kinds, found := known[name]
		switch {
		case !found:
			return fmt.Errorf("attribute %s is not known; there are %s: %w",
				quote.Value(name), strings.Join(slices.Sorted(maps.Keys(known)), ", "), ErrInvalid)
		case !slices.Contains(kinds, kind):
			return fmt.Errorf("attribute %s, with the value %s, is not taken by a volume of the kind %q: %w",
				name, quote.Value(given[name]), kind, ErrInvalid)
		}
	}
	return nil
}

// read reads one attribute, which the kind takes.
func (r Rules) read(v *Volume, kind Kind, name, value, volumeHandle string) (err error) {
	switch name {
	case attributeURL:
		v.URL, err = r.parseURL(kind, value)
	case attributeRef:
		v.Ref, err = parseRef(kind, value, volumeHandle)
	case attributePull:
		v.Pull, err = parsePull(kind, value)
	case attributeDepth:
		v.Depth, err = parseDepth(value)
	case attributeOffline:
		v.Offline = Offline(value)
		if v.Offline != OfflineRefuse && v.Offline != OfflineAllowStale {
			err = refuse(value, fmt.Sprintf("is neither %s nor %s", OfflineRefuse, OfflineAllowStale))
		}
	case attributeWebhookSecret:
		v.WebhookSecret = value
		if handle.Check(value) != nil {
			err = refuse(value, "is no name of a Secret: lower-case letters, digits, '-' and '.'")
		}
	}
	return err
}

func (r Rules) parseURL(kind Kind, text string) (URL, error) {
	u, err := ParseURL(text)
	switch {
	case err != nil:
		return URL{}, err
	case u.IsLocal() && !r.Local:
		return URL{}, refuseURL(text, "is a directory of the node, which --allow-local-urls would have to allow; write https://, ssh:// or user@host:path")
	case u.Scheme == schemeGit && kind == KindWriteable:
		return URL{}, refuseURL(text, "can only be read; a writeable volume takes https://, ssh:// or user@host:path")
	case u.IsLocal() || len(r.Allow) == 0:
		return u, nil
	}
	if !slices.ContainsFunc(r.Allow, func(p Pattern) bool { return p.Match(u) }) {
		return URL{}, refuseURL(text, "is not among those that this node may reach (--allow-url)")
	}
	return u, nil
}

func parsePull(kind Kind, value string) (Pull, error) {
	switch {
	case value == pullNever:
		return Pull{}, nil
	case value == pullOnDemand && kind == KindInline:
		return Pull{}, refuse(value, "is not taken by inline volumes, which nobody can ask; write a duration or never")
	case value == pullOnDemand:
		return Pull{OnDemand: true}, nil
	}
	every, err := time.ParseDuration(value)
	if err != nil || every < minPull {
		return Pull{}, refuse(value, "is neither a duration of 1s or more, as in 5m or 90s, nor "+pullOnDemand+", nor "+pullNever)
	}
	return Pull{Every: every}, nil
}

func parseDepth(value string) (int, error) {
	depth, err := strconv.ParseUint(value, 10, 31)
	// git takes the greatest for "all", as it does when a shallow repository is completed.
	if err != nil || depth == math.MaxInt32 {
		return 0, refuse(value, "is no whole number of commits; 0 is the full history")
	}
	return int(depth), nil
}
