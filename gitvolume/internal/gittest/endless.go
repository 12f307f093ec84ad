package gittest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// Endless is the URL of a server whose branch main is a pack that begins as any other and
// has no end: 96 MiB at once, and then 2 MiB a second.
func Endless(t testing.TB) string {
	t.Helper()
	server := Listen(t, func(conn net.Conn) {
		if _, err := ReadPacket(conn); err != nil {
			return
		}
		refs := strings.Repeat("1", 40) + " refs/heads/main\x00side-band-64k\n"
		_, _ = fmt.Fprintf(conn, "%04x%s0000", len(refs)+4, refs)
		for {
			packet, err := ReadPacket(conn)
			if err != nil {
				return
			}
			if strings.HasPrefix(packet, "done") {
				sendEndless(conn)
				return
			}
		}
	})
	return "git://" + server.Address + "/r"
}

func sendEndless(conn net.Conn) {
	if _, err := io.WriteString(conn, "0008NAK\n"); err != nil {
		return
	}
	// One blob of 2^48 bytes, in stored blocks of zlib.
	begin := "PACK\x00\x00\x00\x02\x00\x00\x00\x01" + "\xb0\x80\x80\x80\x80\x80\x80\x04" + "\x78\x01"
	const size = 32 << 10
	block := binary.LittleEndian.AppendUint16([]byte{0}, size)
	block = binary.LittleEndian.AppendUint16(block, ^uint16(size))
	block = append(block, make([]byte, size)...)
	send := func(data []byte) bool {
		_, err := fmt.Fprintf(conn, "%04x\x01%s", len(data)+5, data)
		return err == nil
	}
	for sent, more := 0, send([]byte(begin)); more; sent += size {
		if sent > 96<<20 {
			time.Sleep(time.Second / 64)
		}
		more = send(block)
	}
}
