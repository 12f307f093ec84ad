package trash

import (
	"os"
	"testing"

	"liken.sh/csicommon/csitest/mountns"
)

func TestMain(m *testing.M) {
	if store := os.Getenv(killedStore); store != "" {
		beKilled(store)
	}
	mountns.Main(m)
}
