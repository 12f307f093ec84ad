package history

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// ErrContent says that a server which checks refuses a file of that name with that
// content, and every commit from then on with it.
var ErrContent = errors.New("git servers refuse that content")

// Bounds that git itself has for .gitattributes, and for files it parses at all.
const (
	maxAttributes     = 100 << 20
	maxAttributesLine = 2048
	maxModules        = 512 << 20
)

// MostChecked is the size, in bytes, above which a file of a name that CheckContent
// looks into is not to be committed, though git's own bounds are higher: an application
// may write a file of any size, and to be parsed it is in memory as a whole, several
// times.
const MostChecked = 1 << 20

// CheckContent refuses the content of a file named .gitmodules or .gitattributes, or as
// some system takes for it, that receive.fsckObjects refuses. Other files may hold
// anything. The error is ErrContent.
func CheckContent(name string, content []byte) error {
	if IsAttributes(name) {
		if err := checkAttributes(content); err != nil {
			return fmt.Errorf("%q: %w: %w", name, ErrContent, err)
		}
	}
	if IsModules(name) {
		if err := checkModules(content); err != nil {
			return fmt.Errorf("%q: %w: %w", name, ErrContent, err)
		}
	}
	return nil
}

// checkAttributes refuses what git would not parse. For git the file ends at a NUL.
func checkAttributes(content []byte) error {
	if len(content) > maxAttributes {
		return fmt.Errorf("it has %d bytes, git parses at most %d", len(content), maxAttributes)
	}
	content, _, _ = bytes.Cut(content, []byte{0})
	for line := range bytes.SplitSeq(content, []byte("\n")) {
		if len(line) >= maxAttributesLine {
			return fmt.Errorf("a line has %d bytes, git parses less than %d", len(line), maxAttributesLine)
		}
	}
	return nil
}

// checkModules refuses submodules that have led others to run commands. What follows a
// mistake in the file is not looked at, neither by git.
func checkModules(content []byte) error {
	if len(content) > maxModules {
		return fmt.Errorf("it has %d bytes, git parses at most %d", len(content), maxModules)
	}
	// Where C's char has a sign, git takes 0xff for the file's end; elsewhere not.
	upTo, _, _ := bytes.Cut(content, []byte{0xff})
	return errors.Join(parseConfig(content, checkModule), parseConfig(upTo, checkModule))
}

// checkModule refuses one value of a submodule. For git a value ends at a NUL.
func checkModule(in configSection, key, value string) error {
	if in.of != "submodule" || !in.named {
		return nil
	}
	value, _, _ = strings.Cut(value, "\x00")
	if !safeModuleName(in.name) {
		return fmt.Errorf("the name %q of a submodule", in.name)
	}
	bad := false
	switch key {
	case "url":
		bad = !safeURL(value)
	case "path":
		bad = strings.HasPrefix(value, "-")
	case "update":
		bad = strings.HasPrefix(value, "!")
	}
	if bad {
		return fmt.Errorf("the %s %q of the submodule %q", key, value, in.name)
	}
	return nil
}

// safeModuleName tells whether a submodule's name, which is a directory below .git,
// stays there.
func safeModuleName(name string) bool {
	for part := range strings.FieldsFuncSeq(name, func(c rune) bool { return c == '/' || c == '\\' }) {
		if part == ".." {
			return false
		}
	}
	return name != ""
}

// safeURL tells whether git takes a submodule's URL: it is no option, and neither
// escapes its host nor smuggles a line to a credential helper.
func safeURL(url string) bool {
	if strings.HasPrefix(url, "-") {
		return false
	}
	if strings.HasPrefix(url, "./") || strings.HasPrefix(url, "../") || strings.HasPrefix(url, "git://") {
		ups, rest := 0, url
		for {
			if after, ok := strings.CutPrefix(rest, "../"); ok {
				ups, rest = ups+1, after
			} else if after, ok := strings.CutPrefix(rest, "./"); ok {
				rest = after
			} else {
				break
			}
		}
		return !strings.Contains(percentDecoded(url), "\n") &&
			(ups == 0 || rest == "" || rest[0] != ':' && rest[0] != '/')
	}
	for _, helper := range []string{"http", "https", "ftp", "ftps"} {
		if after, ok := strings.CutPrefix(url, helper+"::"); ok {
			return safeHTTP(after)
		}
		if strings.HasPrefix(url, helper+"://") {
			return safeHTTP(url)
		}
	}
	return true
}

// safeHTTP tells whether a URL has a host and no line break that a credential helper
// would see.
func safeHTTP(url string) bool {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok || scheme == "" || strings.ContainsAny(percentDecoded(url), "\r\n") {
		return false
	}
	host := rest[:len(rest)-len(strings.TrimLeftFunc(rest, func(c rune) bool { return !strings.ContainsRune("/?#", c) }))]
	if at := strings.IndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	return host != ""
}

// percentDecoded is the text with %0a and the like decoded.
func percentDecoded(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '%' && i+2 < len(text) {
			if high, low := hexDigit(text[i+1]), hexDigit(text[i+2]); high >= 0 && low >= 0 {
				b.WriteByte(byte(high<<4 | low))
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func hexDigit(c byte) int { return strings.IndexByte("0123456789abcdef", lower(c)) }
