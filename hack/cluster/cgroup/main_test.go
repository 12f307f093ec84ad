package cgroup

import (
	"testing"

	"liken.sh/csicommon/csitest/mountns"
)

func TestMain(m *testing.M) { mountns.Main(m) }
