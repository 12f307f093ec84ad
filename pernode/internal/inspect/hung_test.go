package inspect

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/usage"
	"liken.sh/pernode/internal/copies"
)

func TestACopyThatDoesNotAnswerHangsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, "h1", "h2", "h3")
		i := n.running(t)
		n.set(func() { n.states["h2"] = copies.State{Exists: true, Held: true} })
		answer := n.hang(t, "h2")
		time.Sleep(lookEvery + patience)
		wantVerdict(t, i, "h2", "")
		n.set(func() { n.states["h3"] = copies.State{Exists: true, Unmounted: true} })
		time.Sleep(2 * lookEvery)
		wantVerdict(t, i, "h2", "!CopyUnreadable")
		wantVerdict(t, i, "h1", "")
		wantVerdict(t, i, "h3", TargetNotMounted)
		before := n.lookedAt("h2")
		time.Sleep(time.Hour)
		if got := n.lookedAt("h2"); got != before {
			t.Errorf("%d more looks hang", got-before)
		}
		answer()
		synctest.Wait()
		wantVerdict(t, i, "h2", "")
		if got := i.Figures(t.Context()); got.Held != 1 {
			t.Errorf("%+v", got)
		}
	})
}

func (n *node) lookedAt(volume string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.looks[volume]
}

func TestAStoreThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, "h1", "h2")
		i := n.running(t)
		answer := n.hang(t, "")
		time.Sleep(lookEvery)
		wantVerdict(t, i, "h1", "")
		time.Sleep(hungAfter + time.Second)
		wantVerdict(t, i, "h1", "!CopyUnreadable")
		wantVerdict(t, i, "h2", "!CopyUnreadable")
		wantVerdict(t, i, "never-seen", "")
		answer()
		synctest.Wait()
		wantVerdict(t, i, "h1", "")
	})
}

func TestNoMoreLooksWaitForTheDiskThanTheBoundAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const more = 10
		n := newNode(t)
		var answers []func()
		for v := range looks + more {
			name := fmt.Sprint("h", v)
			n.add(t, name)
			answers = append(answers, n.hang(t, name))
		}
		i := n.running(t)
		time.Sleep(time.Hour)
		looked := 0
		for v := range looks + more {
			looked += n.lookedAt(fmt.Sprint("h", v))
			wantVerdict(t, i, fmt.Sprint("h", v), "!CopyUnreadable")
		}
		if looked != looks {
			t.Errorf("%d looks wait for the disk", looked)
		}
		for _, answer := range answers {
			answer()
		}
		synctest.Wait()
		for v := range looks + more {
			wantVerdict(t, i, fmt.Sprint("h", v), "")
		}
	})
}

func TestFiguresNeverWaitLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, "h1", "h2")
		n.set(func() { n.states["h1"] = copies.State{Exists: true, Held: true} })
		i := n.running(t)
		want := Figures{Counted: true, Copies: 2, Held: 1, Sized: true, Space: usage.Space{Bytes: 100, AvailableBytes: 50}}
		n.wantFigures(t, i, want)
		n.hang(t, "h1")
		n.hang(t, "h2")
		n.hang(t, "")
		for range 5 {
			i.Touch("h1")
			n.wantFigures(t, i, want)
			time.Sleep(time.Minute)
		}
		n.wantFigures(t, i, want)
	})
}

func (n *node) wantFigures(t *testing.T, i *Inspector, want Figures) {
	t.Helper()
	start := time.Now()
	got := i.Figures(t.Context())
	got.Bytes = nil
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if took := time.Since(start); took > patience {
		t.Errorf("took %s", took)
	}
}

func TestFiguresOfAStoreThatNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, "h1")
		n.hang(t, "")
		n.wantFigures(t, n.running(t), Figures{})
	})
}

func TestFiguresAreThoseOfThisMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		i := n.running(t)
		space := usage.Space{Bytes: 100, AvailableBytes: 50}
		n.wantFigures(t, i, Figures{Counted: true, Sized: true, Space: space})
		n.add(t, "h1")
		n.set(func() { n.states["h1"] = copies.State{Exists: true, Held: true} })
		i.Touch("h1")
		n.wantFigures(t, i, Figures{Counted: true, Copies: 1, Held: 1, Sized: true, Space: space})
		n.set(func() { n.states["h1"] = copies.State{Exists: true} })
		i.Touch("h1")
		n.wantFigures(t, i, Figures{Counted: true, Copies: 1, Sized: true, Space: space})
		n.set(func() { delete(n.states, "h1"); n.listed = nil })
		i.Forget("h1")
		n.wantFigures(t, i, Figures{Counted: true, Sized: true, Space: space})
	})
}

func TestAVerdictGoesWithItsCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		i := n.running(t)
		n.set(func() { n.err = copies.ErrNotADirectory }) // A link, which is not listed.
		i.Touch("h1")
		time.Sleep(2 * settle)
		wantVerdict(t, i, "h1", "!CopyUnreadable")
		time.Sleep(10 * lookEvery)
		wantVerdict(t, i, "h1", "!CopyUnreadable")
		n.set(func() { n.err = nil })
		time.Sleep(lookEvery + settle)
		wantVerdict(t, i, "h1", "")
		if got := len(i.subjects); got != 0 {
			t.Errorf("%d volumes are still known", got)
		}
	})
}

func TestACopyDeletedUnderItsPodIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, "h1")
		n.set(func() { n.states["h1"] = copies.State{Exists: true, Held: true} })
		i := n.running(t)
		n.set(func() { n.listed, n.states["h1"] = nil, copies.State{Held: true, Deleted: true} })
		time.Sleep(10 * lookEvery)
		wantVerdict(t, i, "h1", CopyDeleted)
	})
}

func TestAStoreThatCannotBeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, "h1")
		i := n.running(t)
		n.set(func() { n.listErr, n.listed, n.err = unix.EIO, nil, unix.EIO })
		time.Sleep(lookEvery + settle)
		wantVerdict(t, i, "h1", "!CopyUnreadable")
		n.set(func() { n.listErr, n.listed, n.err = nil, []string{"h1"}, nil })
		time.Sleep(lookEvery + settle)
		wantVerdict(t, i, "h1", "")
	})
}
