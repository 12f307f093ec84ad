package attributes

import (
	"fmt"
	"net/netip"
	"strings"
)

// brokenHostRule checks that a host is a name or an address that every resolver reads
// alike, and none that ssh could take for an option.
func brokenHostRule(host string) string {
	switch {
	case host == "":
		return "has no host"
	case host[0] == '-':
		return "has a host that starts with '-': ssh would take it for an option"
	case strings.Contains(host, "%"):
		return "has a host with a percent sign: an address with a zone is of one machine only, and a name has none"
	case strings.Contains(host, ":"):
		if _, err := netip.ParseAddr(host); err != nil {
			return "has a host that is neither a name nor an IPv6 address; a port is a number after the host, as in ssh://host:2222/path"
		}
		return ""
	case len(host) > 254:
		return "has a host of more than 253 bytes"
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for _, label := range labels {
		if rule := brokenLabelRule(label); rule != "" {
			return "has a host with a mistake: " + rule
		}
	}
	// Resolvers take 127.1, 0x7f.0.0.1 and 2130706433 for addresses, which no list of
	// hosts would recognize.
	if last := labels[len(labels)-1]; isNumber(last) {
		if _, err := netip.ParseAddr(host); err != nil {
			return "has a host that ends in a number: an IPv4 address is four decimal numbers, as in 192.0.2.1"
		}
	}
	return ""
}

func brokenLabelRule(label string) string {
	switch {
	case label == "":
		return "there is nothing between two dots"
	case len(label) > 63:
		return "a part between dots has at most 63 bytes"
	case label[0] == '-':
		return "a part between dots starts with '-'"
	}
	for i := range len(label) {
		switch c := label[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		case c >= 0x80:
			return "it has a letter outside ASCII; write the name's xn-- form"
		default:
			return fmt.Sprintf("it has a %q", c)
		}
	}
	return ""
}

// isNumber tells whether C's functions read the label as a number.
func isNumber(label string) bool {
	if digits, found := strings.CutPrefix(strings.ToLower(label), "0x"); found {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// brokenUserRule checks the user of a URL. The shell's own bytes are refused as newer
// versions of ssh do.
func brokenUserRule(user, scheme string) string {
	switch {
	case scheme != schemeSSH:
		return "has a user before the host, which only ssh takes"
	case user == "":
		return "has nothing before the '@'"
	case user[0] == '-':
		return "has a user that starts with '-': ssh would take it for an option"
	}
	if i := strings.IndexAny(user, " '`\"\\$;&<>|(){}[]%"); i >= 0 {
		return fmt.Sprintf("has a user with a %q, which a shell could take for its own; write who logs in, as git in git@host:path", user[i])
	}
	return ""
}
