package attributes

import (
	"fmt"
	"strconv"
	"strings"
)

// brokenTextRule checks what holds for every address, before it is taken apart.
func brokenTextRule(text string) string {
	switch {
	case text == "":
		return "is empty: write the address of a repository"
	case text[0] == '-':
		return "starts with '-': git would take it for an option"
	case strings.TrimSpace(text) != text:
		return "starts or ends with white space"
	}
	if rule := controlByte(text); rule != "" {
		return rule
	}
	if helper, _, found := strings.Cut(text, "::"); found && strings.Trim(helper, schemeBytes) == "" {
		return "is the address of a remote helper (transport::address), which could run any command; write an https:// or ssh:// URL"
	}
	return ""
}

func controlByte(text string) string {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == 0x7f {
			return fmt.Sprintf("has the control byte 0x%02x at byte %d; write it on one line, of letters that can be seen", c, i+1)
		}
	}
	return ""
}

const schemeBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-."

// parse takes an address apart as git does, or tells which rule it breaks.
func parse(text string) (URL, string) {
	scheme, rest, isURL := strings.Cut(text, "://")
	switch {
	case !isURL:
		return parseBare(text)
	case strings.Trim(scheme, schemeBytes) != "":
		return URL{}, "has \"://\" after what is no scheme"
	}
	switch scheme {
	case schemeHTTPS, schemeHTTP:
		return parseHTTP(scheme, rest)
	case schemeSSH, schemeGit:
		// git decodes all of it before it looks for the host, so does this.
		return parseGit(scheme, decode(rest), '/')
	case schemeFile:
		path := decode(rest)
		if !strings.HasPrefix(path, "/") {
			return URL{}, "names a host: a file URL has three slashes, file:///path"
		}
		return URL{Scheme: schemeFile, Path: path}, controlByte(path)
	}
	switch strings.ToLower(scheme) {
	case schemeHTTPS, schemeHTTP, schemeSSH, schemeGit, schemeFile:
		return URL{}, "has a scheme with upper-case letters, which git does not know"
	}
	return URL{}, fmt.Sprintf("has the scheme %q, served are https, http, ssh and git", scheme)
}

// parseBare reads what has no scheme: "user@host:path", or a path of this machine, where
// git finds a slash before the first colon.
func parseBare(text string) (URL, string) {
	colon, slash := strings.IndexByte(text, ':'), strings.IndexByte(text, '/')
	if colon >= 0 && (slash < 0 || colon < slash) {
		u, rule := parseGit(schemeSSH, text, ':')
		u.ScpStyle = true
		return u, rule
	}
	if slash == 0 {
		return URL{Scheme: schemeFile, Path: text}, ""
	}
	return URL{}, "has no scheme: git would take it for a directory of this machine; write https://host/path, ssh://user@host/path or user@host:path"
}

// parseGit reads the addresses that git takes apart itself: what follows "ssh://" or
// "git://", where a slash ends the host, and "user@host:path", where a colon does.
func parseGit(scheme, rest string, separator byte) (URL, string) {
	if rule := controlByte(rest); rule != "" {
		return URL{}, "is decoded, and " + rule
	}
	// The brackets of an IPv6 address may hold the user too, and the port: [user@::1]:path
	start := afterBrackets(rest)
	end := strings.IndexByte(rest[start:], separator)
	if end < 0 {
		return URL{}, "has no path"
	}
	authority, path := rest[:start+end], rest[start+end:]
	if separator == ':' {
		path = path[1:]
	}
	if len(path) > 1 && path[1] == '~' {
		path = path[1:] // /~user/r
	}
	switch {
	case path == "":
		return URL{}, "has no path"
	case path[0] == '-':
		return URL{}, "has a path that starts with '-': the server could take it for an option; write host:./-path"
	case separator == ':' && looksLikePassword(authority, path):
		return URL{}, "seems to hold a password (user:password@host:path): credentials belong in a Secret"
	}
	u := URL{Scheme: scheme, Path: path}
	u, rule := u.withAuthority(authority)
	return u, rule
}

// looksLikePassword tells of "user:password@host:path", in which git sees the host
// "user" and a path, which then is on a command line.
func looksLikePassword(authority, path string) bool {
	before, after, found := strings.Cut(path, "@")
	return found && !strings.Contains(authority, "@") && (!strings.Contains(before, "/") || strings.Contains(after, ":"))
}

// withAuthority reads "user@host:port" as git and ssh do.
func (u URL) withAuthority(authority string) (URL, string) {
	plain, afterHost := authority, 0
	if start := bracketStart(authority); start >= 0 {
		if inside := strings.IndexByte(authority[start:], ']'); inside >= 0 {
			after := authority[start+inside+1:]
			if after != "" && after[0] != ':' {
				return URL{}, "has something between the ']' and the colon"
			}
			afterHost = start + inside - 1
			plain = authority[:start] + authority[start+1:start+inside] + after
		}
	}
	at := strings.LastIndexByte(plain, '@')
	if at >= 0 && strings.Contains(plain[:at], ":") {
		return URL{}, "has a password before the host: credentials belong in a Secret"
	}
	port := ""
	switch colon := strings.IndexByte(plain[afterHost:], ':'); {
	case colon >= 0:
		plain, port = plain[:afterHost+colon], plain[afterHost+colon+1:]
	case afterHost > 0 && strings.Count(plain, ":") == 1 && plain[len(plain)-1] != ':':
		plain, port, _ = strings.Cut(plain, ":") // [host:port]
	}
	number, rule := parsePort(port, u.Scheme)
	if rule != "" {
		return URL{}, rule
	}
	u.Host, u.Port = plain, number
	if at >= 0 {
		u.User, u.Host = plain[:at], plain[at+1:]
		if rule := brokenUserRule(u.User, u.Scheme); rule != "" {
			return URL{}, rule
		}
	}
	return u, brokenHostRule(u.Host)
}

// parseHTTP reads what follows "https://" or "http://", and leaves nothing in it that
// curl, a proxy and this package could read in different ways.
func parseHTTP(scheme, rest string) (URL, string) {
	authority, path, _ := strings.Cut(rest, "/")
	switch {
	case strings.ContainsAny(rest, "?#"):
		return URL{}, "has a query or a fragment: write the address that git clones from; a token belongs in a Secret"
	case strings.ContainsAny(rest, " \\"):
		return URL{}, "has a space or a backslash, which no server is asked for; write %20 or %5C"
	case strings.Contains(authority, "@"):
		return URL{}, "has a user before the host: user and token belong in a Secret (keys username and token)"
	}
	host, port, rule := splitHTTPHost(authority)
	if rule != "" {
		return URL{}, rule
	}
	u := URL{Scheme: scheme, Host: host, Path: decode("/" + path)}
	if u.Port, rule = parsePort(port, scheme); rule != "" {
		return URL{}, rule
	}
	if rule := controlByte(u.Path); rule != "" {
		return URL{}, "is decoded, and " + rule
	}
	return u, brokenHostRule(host)
}

// splitHTTPHost parts "host:port" or "[address]:port".
func splitHTTPHost(authority string) (host, port, rule string) {
	if !strings.HasPrefix(authority, "[") {
		host, port, _ = strings.Cut(authority, ":")
		return host, port, ""
	}
	host, after, found := strings.Cut(authority[1:], "]")
	switch {
	case !found || after != "" && after[0] != ':':
		return "", "", "has no ']' where the address ends"
	case !strings.Contains(host, ":"):
		return "", "", "has brackets around what is no IPv6 address"
	}
	return host, strings.TrimPrefix(after, ":"), ""
}

// parsePort reads the port; none written is the scheme's own.
func parsePort(text, scheme string) (int, string) {
	if text == "" {
		switch scheme {
		case schemeHTTPS:
			return 443, ""
		case schemeHTTP:
			return 80, ""
		case schemeGit:
			return 9418, ""
		}
		return 22, ""
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		if strings.HasPrefix(text, "~") {
			return 0, "has a home directory where the port belongs: write ssh://host/~user/path or host:~user/path"
		}
		return 0, "has a port that is no number from 1 to 65535"
	}
	return int(port), ""
}

// afterBrackets is where git begins to look for the end of the host.
func afterBrackets(address string) int {
	if start := bracketStart(address); start >= 0 {
		if inside := strings.IndexByte(address[start+1:], ']'); inside >= 0 {
			return start + 1 + inside
		}
	}
	return 0
}

// bracketStart is where the brackets of a host open, or -1: at the start or after "@".
func bracketStart(address string) int {
	if at := strings.Index(address, "@["); at >= 0 {
		return at + 1
	}
	if strings.HasPrefix(address, "[") {
		return 0
	}
	return -1
}

// decode resolves percent signs as git does: what is no escape stays as it is.
func decode(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if value, err := strconv.ParseUint(text[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(value))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
