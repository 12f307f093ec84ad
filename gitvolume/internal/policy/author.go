package policy

import "strings"

// Author is who commits, in the form in which git writes it.
type Author struct{ Name, Email string }

const (
	defaultName  = "git-csi-driver"
	defaultEmail = "git-csi-driver@git.liken.sh"
)

func defaultAuthor() Author { return Author{Name: defaultName, Email: defaultEmail} }

// String is "Name <email>".
func (a Author) String() string { return a.Name + " <" + a.Email + ">" }

// parseAuthor reads "Name <email>", where the last "<" begins the address, or a name
// alone. What a commit cannot hold is taken out as git takes it out: a server that
// checks what it is sent would refuse every push from then on.
func parseAuthor(value string) (Author, string) {
	author := Author{Name: value, Email: defaultEmail}
	if trimmed := strings.TrimRight(value, " \t\r\n"); strings.HasSuffix(trimmed, ">") {
		if start := strings.LastIndexByte(trimmed, '<'); start >= 0 {
			author = Author{Name: trimmed[:start], Email: trimmed[start+1 : len(trimmed)-1]}
		}
	}
	author = Author{Name: sanitized(author.Name), Email: sanitized(author.Email)}
	switch {
	case author.Name == "":
		return Author{}, "leaves no name; write Name <email>, or a name"
	case author.Email == "":
		return Author{}, "leaves no address between < and >; leave both out for " + defaultEmail
	}
	return author, ""
}

// sanitized is what git makes of a name or an address: without "<", ">" and line breaks,
// and without blanks, control bytes and punctuation around it. A NUL byte, which no
// environment could have brought to git, goes too, and what is no UTF-8, as commits are,
// is replaced.
func sanitized(text string) string {
	text = strings.TrimFunc(strings.ToValidUTF8(text, "�"), func(r rune) bool {
		return r <= ' ' || strings.ContainsRune(`.,:;<>"\'`, r)
	})
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("<>\n\x00", r) {
			return -1
		}
		return r
	}, text)
}
