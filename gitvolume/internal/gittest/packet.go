package gittest

import (
	"fmt"
	"io"
	"strings"
)

// Packet is a line of git's protocols with its length before it.
func Packet(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// Flush is the packet that ends a list.
const Flush = "0000"

// Advertisement is how a server that speaks git's oldest protocol tells its refs, each
// given as "ID NAME".
func Advertisement(capabilities string, refs ...string) string {
	var b strings.Builder
	for i, ref := range refs {
		if i == 0 {
			ref += "\x00" + capabilities
		}
		b.WriteString(Packet(ref + "\n"))
	}
	return b.String() + Flush
}

// ReadPacket reads one packet; a flush is empty.
func ReadPacket(r io.Reader) (string, error) {
	var length int
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return "", err
	}
	if _, err := fmt.Sscanf(string(head), "%04x", &length); err != nil || length < 4 {
		return "", err
	}
	body := make([]byte, length-4)
	_, err := io.ReadFull(r, body)
	return string(body), err
}
