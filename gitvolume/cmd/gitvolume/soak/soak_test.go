//go:build soak

package soak

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// The variables of how long the torture takes in all, and of the run to have again.
const (
	timeVariable = "SOAK_TIME"
	seedVariable = "SOAK_SEED"
)

func TestSoak(t *testing.T) {
	all, seed := 10*time.Minute, rand.Uint64()
	var err error
	if text := os.Getenv(timeVariable); text != "" {
		if all, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", timeVariable, err)
		}
	}
	if text := os.Getenv(seedVariable); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	run(t, seed, all)
}
