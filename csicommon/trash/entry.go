package trash

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	digits = 19 // Of UnixNano, so that the order of entries is that of time.
	random = 26 // Of rand.Text.
	// wrapperLength is that of "." + digits + "-" + random.
	wrapperLength = 1 + digits + 1 + random
)

// newWrapper names a directory of the bin that an item is put into:
// ".<time>-<random>". No handle starts with a dot, and an item without a
// wrapper (see bareName) is longer, so nothing else has such a name.
func newWrapper() string { return newWrapperAt(time.Now()) }

func newWrapperAt(put time.Time) string {
	return fmt.Sprintf(".%0*d-%s", digits, put.UnixNano(), rand.Text())
}

// bareName names an item that lies in the bin, or at the top of an item,
// without a wrapper of its own: ".<time>-<random>-<name>". It is for people that
// it ends with the name, so of one that would make it longer than a name may be
// the end is left out.
func bareName(name string) string {
	whole := newWrapper() + "-" + name
	return whole[:min(len(whole), unix.NAME_MAX)]
}

// isWrapper tells whether an entry of the bin has its item in it, as opposed to
// being one.
func isWrapper(entry string) bool {
	return len(entry) == wrapperLength && isStamped(entry)
}

// original is what an entry was called when it was put.
func original(entry string) string {
	if isStamped(entry) && strings.HasPrefix(entry[wrapperLength:], "-") {
		return entry[wrapperLength+1:]
	}
	return entry // Put into the bin by hand.
}

func isStamped(entry string) bool {
	if len(entry) < wrapperLength || entry[0] != '.' || entry[1+digits] != '-' {
		return false
	}
	return strings.Trim(entry[1:1+digits], "0123456789") == ""
}

// putAt is when an entry was put, unless that was done by hand.
func putAt(entry string) (time.Time, bool) {
	if !isStamped(entry) {
		return time.Time{}, false
	}
	nanoseconds, err := strconv.ParseInt(entry[1:1+digits], 10, 64)
	return time.Unix(0, nanoseconds), err == nil
}
