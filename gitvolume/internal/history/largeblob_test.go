package history

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/pjbgf/sha1cd"

	"liken.sh/gitvolume/internal/object"
)

// shattered is how the first of the two files with one SHA-1 that were made known
// begins. None is known that is so with a blob's header before it.
const shattered = `
255044462d312e330a25e2e3cfd30a0a0a312030206f626a0a3c3c2f57696474682032203020522f
4865696768742033203020522f547970652034203020522f537562747970652035203020522f4669
6c7465722036203020522f436f6c6f7253706163652037203020522f4c656e677468203820302052
2f42697473506572436f6d706f6e656e7420383e3e0a73747265616d0affd8fffe00245348412d31
20697320646561642121212121852fec092339759c39b1a1c63c4c97e1fffe017346dc9166b67e11
8f029ab621b2560ff9ca67cca8c7f85ba84c79030c2b3de218f86db3a90901d5df45c14f26fedfb3
dc38e96ac22fe7bd728f0e45bce046d23c570feb141398bb552ef5a0a82be331fea48037b8b5d71f
0e332edf93ac3500eb4ddc0decc1a864790c782c76215660dd309791d06bd0af3f98cda4bc4629b1`

// TestSafeID has content that another one was made for, and content that was not.
func TestSafeID(t *testing.T) {
	content := must(hex.DecodeString(strings.ReplaceAll(shattered, "\n", "")))
	sum := sha1cd.New()
	sum.Write(content)
	if got, err := safeID(sum); !errors.Is(err, ErrContent) {
		t.Errorf("the id of the known content is %s, %v", got, err)
	}
	content[0]++
	sum.Reset()
	sum.Write(content)
	if got, err := safeID(sum); err != nil || got != object.ID(sha1.Sum(content)) {
		t.Errorf("the id of other content is %s, %v", got, err)
	}
	if got, err := safeID(sha1.New()); err == nil {
		t.Errorf("the id of a sum that finds nothing is %s", got)
	}
}
