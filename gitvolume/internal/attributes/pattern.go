package attributes

import (
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Pattern is a value of --allow-url: [scheme://]host[:port][/path].
//
//   - The host is a name or an address, compared without regard to case and a final
//     dot; "*.example.com" is every name below example.com, however deep, and not
//     example.com itself; "*" is every host.
//   - Without a scheme, any scheme matches; without a port, any port.
//   - The path is compared part by part, without a first slash and a final ".git"; a "*"
//     stands for any bytes of one part, and a last part "*" for one part or more. A path
//     with "." or ".." in it matches no pattern with a path. Without a path, any matches.
//
// The user, who is no part of where a node may go, is not looked at. Nothing else is a
// wildcard, so that what looks like an expression is an error and not a hole.
type Pattern struct {
	scheme, host string
	port         int
	segments     []string
}

const anyHost = "*"

// ParsePattern reads a pattern.
func ParsePattern(text string) (Pattern, error) {
	if rule := brokenPatternRule(text); rule != "" {
		return Pattern{}, refuse(text, rule)
	}
	var p Pattern
	rest := text
	if scheme, after, found := strings.Cut(text, "://"); found {
		switch scheme {
		case schemeHTTPS, schemeHTTP, schemeSSH, schemeGit:
			p.scheme, rest = scheme, after
		default:
			return Pattern{}, refuse(text, "has a scheme that is not served; https, http, ssh and git are")
		}
	}
	authority, tail, hasPath := strings.Cut(rest, "/")
	if hasPath {
		if strings.ContainsAny(tail, "[]") {
			return Pattern{}, refuse(text, "has a bracket in its path, where only \"*\" is special; write a pattern for each path")
		}
		p.segments = segmentsOf(tail)
		// Without its ".git", "..git" is "." and matches nothing either.
		if slices.ContainsFunc(append(strings.Split(tail, "/"), p.segments...), unsafeSegment) {
			return Pattern{}, refuse(text, "has a path with an empty part, \".\" or \"..\"; for all below a directory write /directory/*")
		}
	}
	host, port, rule := splitPatternHost(authority)
	if rule == "" {
		rule = brokenPatternHostRule(host)
	}
	if rule != "" {
		return Pattern{}, refuse(text, rule)
	}
	p.host, p.port = host, port
	if host != anyHost {
		p.host = canonicalHost(host)
	}
	return p, nil
}

func brokenPatternRule(text string) string {
	switch rule := controlByte(text); {
	case text == "":
		return "is empty: write a host, or \"*\" for all"
	case rule != "":
		return rule
	case strings.ContainsAny(text, " @?#\\%{}"):
		return "is no pattern of [scheme://]host[:port][/path], in which only \"*\" is special"
	}
	return ""
}

// splitPatternHost parts "host:port", where an IPv6 address is in brackets.
func splitPatternHost(authority string) (host string, port int, rule string) {
	if host, bracketed := strings.CutPrefix(authority, "["); bracketed && strings.HasSuffix(host, "]") {
		return strings.TrimSuffix(host, "]"), 0, ""
	}
	if !strings.Contains(authority, ":") {
		return authority, 0, ""
	}
	host, text, err := net.SplitHostPort(authority)
	if err != nil {
		return "", 0, "has no host; an IPv6 address is written in brackets"
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil || number == 0 {
		return "", 0, "has a port that is no number from 1 to 65535"
	}
	return host, int(number), ""
}

func brokenPatternHostRule(host string) string {
	if host == anyHost {
		return ""
	}
	name := strings.TrimPrefix(host, "*.")
	if strings.Contains(name, "*") {
		return "has a \"*\" inside a part of the host, by which another's host could match; write *.example.com"
	}
	return brokenHostRule(name)
}

// Match tells whether the pattern lets a node reach the URL.
func (p Pattern) Match(u URL) bool {
	return !u.IsLocal() && u.Host != "" &&
		(p.scheme == "" || p.scheme == u.Scheme) &&
		(p.port == 0 || p.port == u.Port) &&
		p.matchHost(u.CanonicalHost()) &&
		(p.segments == nil || p.matchPath(u.segments()))
}

func (p Pattern) matchHost(host string) bool {
	if below, found := strings.CutPrefix(p.host, "*."); found {
		return strings.HasSuffix(host, "."+below)
	}
	return p.host == anyHost || p.host == host
}

func (p Pattern) matchPath(segments []string) bool {
	if slices.ContainsFunc(segments, unsafeSegment) {
		return false
	}
	for i, pattern := range p.segments {
		if i >= len(segments) {
			return false
		}
		if pattern == "*" && i == len(p.segments)-1 {
			return true
		}
		if matched, err := path.Match(pattern, segments[i]); err != nil || !matched {
			return false
		}
	}
	return len(segments) == len(p.segments)
}

// unsafeSegment tells of a part by which a server could leave the directory that a
// pattern names.
func unsafeSegment(segment string) bool {
	return segment == "" || segment == "." || segment == ".." || strings.Contains(segment, `\`)
}

// String is the pattern in one spelling.
func (p Pattern) String() string {
	text := bracketed(p.host)
	if p.scheme != "" {
		text = p.scheme + "://" + text
	}
	if p.port != 0 {
		text = fmt.Sprintf("%s:%d", text, p.port)
	}
	if p.segments != nil {
		text += "/" + strings.Join(p.segments, "/")
	}
	return text
}
