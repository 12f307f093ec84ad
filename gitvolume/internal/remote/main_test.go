package remote

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	Child(os.Args)
	os.Exit(m.Run())
}
