package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"liken.sh/csicommon/quote"
)

// ErrInvalid is wrapped by every error of Parse.
var ErrInvalid = errors.New("not valid")

// Policy is how a volume is committed and pushed.
type Policy struct {
	// Quiesce is how long a tree has to be quiet before it is committed and pushed.
	Quiesce time.Duration
	// MaxLatency is how long a busy tree goes uncommitted and a commit unpushed at most;
	// 0: until it is quiet.
	MaxLatency time.Duration
	// MaxFileSize is the size of the largest file that is committed, in bytes; 0: none is
	// too large.
	MaxFileSize int64
	Author      Author
	// Ignore are patterns of .gitignore, one a line, beyond the repository's own.
	Ignore []string
	// Metadata tells that owners, modes and empty directories are kept.
	Metadata bool
	// Armed tells that the volume is committed at all.
	Armed bool
}

const (
	parameterQuiesce     = "push.quiesce"
	parameterMaxLatency  = "push.maxLatency"
	parameterMaxFileSize = "commit.maxFileSize"
	parameterAuthor      = "commit.author"
	parameterIgnore      = "ignore"
	parameterMetadata    = "metadata"
	parameterArmed       = "armed"

	never = "never"

	minQuiesce        = 5 * time.Second
	defaultQuiesce    = 30 * time.Second
	defaultMaxLatency = 5 * time.Minute
	defaultFileSize   = 1 << 20

	// kubernetesPrefix is of the keys by which the resizer names the claim.
	kubernetesPrefix = "csi.storage.k8s.io/"
)

// Default is the policy of a class that sets nothing.
func Default() Policy {
	return Policy{
		Quiesce:     defaultQuiesce,
		MaxLatency:  defaultMaxLatency,
		MaxFileSize: defaultFileSize,
		Author:      defaultAuthor(),
		Metadata:    true,
		Armed:       true,
	}
}

// Parse reads the parameters of a class of this driver. An error wraps ErrInvalid and
// names the first bad parameter, in the order of their names.
func Parse(parameters map[string]string) (Policy, error) { return parse(parameters, minQuiesce) }

// parse reads parameters of which a duration has to be at least so long.
func parse(parameters map[string]string, least time.Duration) (Policy, error) {
	p := Default()
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if strings.HasPrefix(name, kubernetesPrefix) {
			continue
		}
		if err := p.read(name, parameters[name], least); err != nil {
			return Policy{}, err
		}
	}
	latency, given := parameters[parameterMaxLatency]
	switch {
	case !given:
		p.MaxLatency = max(p.MaxLatency, p.Quiesce)
	case p.MaxLatency != 0 && p.MaxLatency < p.Quiesce:
		return Policy{}, refuse(parameterMaxLatency, latency,
			fmt.Sprintf("is less than %s, which is %s", parameterQuiesce, p.Quiesce))
	}
	return p, nil
}

func (p *Policy) read(name, value string, least time.Duration) error {
	rule := ""
	switch name {
	case parameterQuiesce:
		p.Quiesce, rule = parseDuration(value, least)
	case parameterMaxLatency:
		if p.MaxLatency = 0; value != never {
			if p.MaxLatency, rule = parseDuration(value, least); rule != "" {
				rule += ", nor " + never
			}
		}
	case parameterMaxFileSize:
		p.MaxFileSize, rule = parseSize(value)
	case parameterAuthor:
		p.Author, rule = parseAuthor(value)
	case parameterIgnore:
		p.Ignore, rule = parseIgnore(value)
	case parameterMetadata:
		p.Metadata, rule = parseBool(value)
	case parameterArmed:
		p.Armed, rule = parseBool(value)
	default:
		return fmt.Errorf("parameter %s is not known; there are %s: %w", quote.Value(name), strings.Join(names(), ", "), ErrInvalid)
	}
	if rule != "" {
		return refuse(name, value, rule)
	}
	return nil
}

func names() []string {
	return []string{
		parameterArmed, parameterAuthor, parameterMaxFileSize, parameterIgnore, parameterMetadata, parameterMaxLatency, parameterQuiesce,
	}
}

// Parameters are those of a class that says the same, each written out.
func (p Policy) Parameters() map[string]string {
	latency := never
	if p.MaxLatency != 0 {
		latency = p.MaxLatency.String()
	}
	return map[string]string{
		parameterQuiesce:     p.Quiesce.String(),
		parameterMaxLatency:  latency,
		parameterMaxFileSize: strconv.FormatInt(p.MaxFileSize, 10),
		parameterAuthor:      p.Author.String(),
		parameterIgnore:      strings.Join(p.Ignore, ","),
		parameterMetadata:    strconv.FormatBool(p.Metadata),
		parameterArmed:       strconv.FormatBool(p.Armed),
	}
}

// MarshalJSON writes the policy as the parameters of a class, which a person can read.
func (p Policy) MarshalJSON() ([]byte, error) { return json.Marshal(p.Parameters()) }

// UnmarshalJSON reads what MarshalJSON wrote, with the rules of Parse but for how short a
// duration may be: a release that bounds them otherwise must not take a record for damaged.
func (p *Policy) UnmarshalJSON(text []byte) error {
	var parameters map[string]string
	if err := json.Unmarshal(text, &parameters); err != nil {
		return fmt.Errorf("read a recorded policy: %w", err)
	}
	read, err := parse(parameters, 0)
	if err != nil {
		return fmt.Errorf("read a recorded policy: %w", err)
	}
	*p = read
	return nil
}

func refuse(name, value, rule string) error {
	return fmt.Errorf("parameter %s: %s %s: %w", name, quote.Value(value), rule, ErrInvalid)
}
