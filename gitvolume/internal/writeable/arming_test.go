package writeable_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/policy"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/writeable"
)

// arm has a class of these parameters be the one in force, be it usable or not.
func (n *node) arm(class policy.Class) {
	p, err := class.Arm("git.liken.sh")
	if err != nil && !errors.Is(err, policy.ErrPaused) {
		p = policy.Default()
	}
	n.arming = writeable.Arming{Policy: p, Class: class.Name, Unarmed: err}
	n.volume.Arm(n.arming)
	n.settle(0)
}

// What would be committed is told as a commit would say it.
func TestPendingLines(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1", "d/e": "1"})
		n := w.node()
		n.arming = unarmed()
		var told [][]string
		n.change = func(s *writeable.Settings) { s.Pending = func(lines []string) { told = append(told, lines) } }
		n.publish()
		n.settle(time.Minute)
		n.write("a", "2")
		n.write("c\nd", "1")
		n.remove("d")
		n.settle(time.Minute)
		want := []string{"M a", `A "c\nd"`, "D d/e"}
		if last := told[len(told)-1]; !slices.Equal(last, want) {
			t.Errorf("told %q, want %q", last, want)
		}
		n.write("a", "1")
		n.settle(time.Minute)
		if last := told[len(told)-1]; !slices.Equal(last, want[1:]) {
			t.Errorf("told %q, want %q", last, want[1:])
		}
		before := len(told)
		n.arm(policy.Class{Name: "fast", Driver: "git.liken.sh", Parameters: files{"push.quiesce": "5s"}})
		n.settle(time.Hour)
		w.remoteHas("main", files{"a": "1", "b": "1", "c\nd": "1"})
		if len(told) != before {
			t.Errorf("an armed volume tells %q", told[before:])
		}
		n.stop()
	})
}

func TestClassUnderWay(t *testing.T) {
	class := func(name string, parameters files) policy.Class {
		return policy.Class{Name: name, Driver: "git.liken.sh", Parameters: parameters}
	}
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.arming = unarmed()
		n.publish()
		n.settle(0)
		n.happened(report.Unarmed, "no class")
		n.write("a", "2")
		n.settle(time.Hour)
		if got := w.count("main"); got != "1" {
			t.Fatalf("an unarmed volume made %s commits", got)
		}
		if got := n.figures(); got.Pending != 1 || got.Armed {
			t.Errorf("the figures are %+v, want one pending path", got)
		}

		n.arm(class("slow", files{"push.quiesce": "1m"}))
		n.happened(report.Armed, "class slow")
		n.settle(59 * time.Second)
		if got := w.count("main"); got != "1" {
			t.Errorf("%s commits before the quiesce", got)
		}
		n.settle(2 * time.Second)
		w.remoteHas("main", files{"a": "2"})
		if got := n.figures(); got.Pending != 0 || !got.Armed || got.LastPush.IsZero() {
			t.Errorf("the figures are %+v, want nothing pending", got)
		}

		n.arm(class("paused", files{"armed": "false", "push.quiesce": "5s"}))
		n.write("a", "3")
		n.settle(time.Hour)
		if got := w.count("main"); got != "2" {
			t.Errorf("a paused volume made a commit: there are %s", got)
		}
		n.faultsAre()

		n.arm(class("broken", files{"push.quiesce": "5 minutes"}))
		n.write("a", "4")
		n.settle(time.Hour)
		n.faultsAre(report.ClassUnusable)
		if got := w.count("main"); got != "2" {
			t.Errorf("a volume with a broken class made a commit: there are %s", got)
		}

		n.arm(class("fast", files{"push.quiesce": "5s", "commit.author": "Notes <notes@example.invalid>", "ignore": "*.tmp"}))
		n.write("x.tmp", "1")
		n.settle(10 * time.Second)
		n.faultsAre()
		w.remoteHas("main", files{"a": "4"})
		if got := w.upstream.Git("log", "-1", "--format=%an <%ae>", "main"); got != "Notes <notes@example.invalid>" {
			t.Errorf("the author is %s", got)
		}
		n.stop()
	})
}

func TestSkippedFiles(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.arming = armed(files{"commit.maxFileSize": "4"})
		n.publish()
		n.settle(time.Minute)
		n.write("large", "12345")
		n.write("small", "1234")
		n.settle(10 * time.Second)
		w.remoteHas("main", files{"a": "1", "small": "1234"})
		if len(n.said.skips) != 1 || n.said.skips[0].Path != "large" {
			t.Errorf("left out: %v, want large", n.said.skips)
		}
		n.write("large", "1")
		n.settle(10 * time.Second)
		w.remoteHas("main", files{"a": "1", "small": "1234", "large": "1"})
		if len(n.said.skips) != 0 {
			t.Errorf("left out: %v, want nothing", n.said.skips)
		}
		n.stop()
	})
}
