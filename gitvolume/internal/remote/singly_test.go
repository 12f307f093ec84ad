package remote

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSinglyIsForgotten(t *testing.T) {
	c := newCommand(t)
	one, other := at(t, "https://h/one").URL, at(t, "https://h/other").URL
	synctest.Test(t, func(t *testing.T) {
		c.rememberSingly(one)
		time.Sleep(singlyAge - time.Nanosecond)
		if !c.takesSingly(one) || c.takesSingly(other) {
			t.Errorf("before its time: %t, %t", c.takesSingly(one), c.takesSingly(other))
		}
		time.Sleep(time.Nanosecond)
		if c.takesSingly(one) {
			t.Error("it is remembered for good")
		}
		c.rememberSingly(one)
		if !c.takesSingly(one) {
			t.Error("it is not remembered once more")
		}
	})
}
