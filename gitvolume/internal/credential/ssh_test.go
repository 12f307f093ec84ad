package credential

import (
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

func TestKeyLogsIn(t *testing.T) {
	key := gittest.NewKey(t, "rsa")
	server := gittest.StartSSHD(t, gittest.SSHDOptions{AuthorizedKeys: []string{key.Authorized}})
	s := serve(t, mustParse(t, map[string]string{"ssh-privatekey": key.PEM}), server.URL("/r"), openHosts(t))
	output, err := connect(t, s, server)
	if err != nil || strings.TrimSpace(output) != "connected" {
		t.Errorf("%s %v %q\n%s", output, err, s.Explanation(), server.Log())
	}
}
