package history

import (
	"strings"
	"unicode/utf8"
)

// likeNTFSGit tells whether NTFS takes the name for ".git": of any case, by its short
// name git~1, with blanks and dots after it, or with a stream's name after a colon.
func likeNTFSGit(name string) bool {
	for _, git := range []string{".git", "git~1"} {
		if len(name) >= len(git) && equalASCII(name[:len(git)], git) {
			rest := strings.TrimLeft(name[len(git):], ". ")
			if rest == "" || rest[0] == ':' || rest[0] == '\\' {
				return true
			}
		}
	}
	return false
}

// likeNTFS tells whether NTFS takes the name for a dot and this file name, or for a
// short name of that: six letters and ~1 to ~4, or the hash that NTFS falls back to.
func likeNTFS(name, file, hash string) bool {
	var end int
	switch {
	case len(name) > len(file) && name[0] == '.' && equalASCII(name[1:len(file)+1], file):
		end = len(file) + 1
	case len(name) >= 8 && equalASCII(name[:6], file[:6]) && name[6] == '~' && name[7] >= '1' && name[7] <= '4':
		end = 8
	case len(name) >= 8 && isHashed(name[:8], hash):
		end = 8
	default:
		return false
	}
	rest := strings.TrimLeft(name[end:], ". ")
	return rest == "" || rest[0] == ':'
}

// isHashed tells whether eight bytes are a short name by hash: some of the six of the
// hash, then a tilde and a number without leading zero that fills the rest.
func isHashed(short, hash string) bool {
	tilde := strings.IndexByte(short, '~')
	if tilde < 0 || tilde > 6 || !equalASCII(short[:tilde], hash[:tilde]) {
		return false
	}
	number := short[tilde+1:]
	return number[0] != '0' && strings.Trim(number, "0123456789") == ""
}

// equalASCII compares two texts, the second of small letters and digits, without
// regard to the case of ASCII letters. Folding as Unicode does would take a Kelvin
// sign for a k.
func equalASCII(a, small string) bool {
	if len(a) != len(small) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != small[i] {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// likeHFS tells whether HFS+ takes the name for a dot and this file name: of any case,
// and with characters in it that HFS+ does not see. Bytes that are no UTF-8 end the
// name, as git reads it.
func likeHFS(name, file string) bool {
	want := "." + file
	for len(name) > 0 {
		char, size := utf8.DecodeRuneInString(name)
		if char == utf8.RuneError && size <= 1 || char == 0xfffe || char == 0xffff {
			break
		}
		name = name[size:]
		if unseenByHFS(char) {
			continue
		}
		if want == "" || char > 0x7f || lower(byte(char)) != want[0] {
			return false
		}
		want = want[1:]
	}
	return want == ""
}

// unseenByHFS tells whether HFS+ leaves the character out when it compares names.
func unseenByHFS(char rune) bool {
	return char >= 0x200c && char <= 0x200f || // joiners and marks of direction
		char >= 0x202a && char <= 0x202e || // embeddings and overrides of direction
		char >= 0x206a && char <= 0x206f || // shapes of digits and swapping
		char == 0xfeff // the byte order mark
}
