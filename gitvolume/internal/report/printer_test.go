package report_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/csicommon/event"
	"liken.sh/gitvolume/internal/report"
)

func TestPrinter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(15*time.Hour + 4*time.Minute + 5*time.Second)
		now := time.Now().Format(time.TimeOnly)
		var out strings.Builder
		// As `gitvolume watch` has it: no pod, no claim, a directory.
		printer := report.NewPrinter(&out)
		s := newStation(t, func(settings *report.Settings) { settings.Recorder, settings.Unposted = printer, printer.Wrong })
		subject := shop()
		subject.Namespace, subject.Claim, subject.ClaimUID, subject.Volume = "", "", "", "/srv/site"
		v := s.Volume(subject)
		v.Happened(report.Pushed, "3f2a1b0 to main, 2 paths")
		v.Raise(report.PushFailed, "the remote declines\x1b[2J")
		v.Raise(report.PushFailed, "the remote declines\x1b[2J")
		v.Raise(report.CredentialMissing, "makes no Event\x1b")
		v.Raise(report.CredentialMissing, "makes no Event\x1b")
		want := now + " pushed: 3f2a1b0 to main, 2 paths\n" + now + ` not pushed: the remote declines\x1b[2J` + "\n" +
			now + ` wrong: makes no Event\x1b` + "\n"
		if out.String() != want {
			t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
		}
	})
}

// Each reason that the package has is said in words of its own.
func TestThePrinterHasWordsForEveryReason(t *testing.T) {
	seen := map[string]string{}
	for _, reason := range reasons(t) {
		var out strings.Builder
		report.NewPrinter(&out).Post(event.Object{}, event.Normal, reason, "m")
		_, words, _ := strings.Cut(strings.TrimSuffix(out.String(), ": m\n"), " ")
		if words == "" || strings.Contains(words, "GitVolume") || seen[words] != "" {
			t.Errorf("%s is printed as %q, as is %q", reason, words, seen[words])
		}
		seen[words] = reason
	}
	var out strings.Builder
	report.NewPrinter(&out).Post(event.Object{}, event.Normal, "Unheard", "m")
	if !strings.HasSuffix(out.String(), " Unheard: m\n") {
		t.Errorf("printed %q", out.String())
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("the terminal is gone") }

func TestAPrinterWithoutATerminal(t *testing.T) {
	s := newStation(t, func(settings *report.Settings) {
		settings.Recorder, settings.Log = report.NewPrinter(broken{}), slog.New(slog.DiscardHandler)
	})
	v := s.Volume(shop())
	v.Raise(report.PushFailed, "x")
	wantVerdict(t, v, "PushFailed")
}
