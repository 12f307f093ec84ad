package soak

import (
	"testing"
	"time"
)

// A torture that is as short as can be, for every run of the tests.
func TestShort(t *testing.T) { run(t, 1, 45*time.Second) }
