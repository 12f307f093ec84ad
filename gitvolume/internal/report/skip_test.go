package report_test

import (
	"fmt"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/report"
)

const (
	tooLarge = "larger than the class allows"
	noName   = "git cannot hold the name"
)

func TestSkipped(t *testing.T) {
	const reason = "PersistentVolumeClaim/config Warning GitVolumeFileSkipped: "
	a, b, c := report.Skip{Path: "a", Why: tooLarge}, report.Skip{Path: "b", Why: noName}, report.Skip{Path: "c\n", Why: tooLarge}
	s := newStation(t)
	v := s.Volume(shop())
	for _, step := range []struct {
		name    string
		skipped []report.Skip
		posts   []string
		health  string
	}{
		{"nothing", nil, nil, ""},
		{"one", []report.Skip{a}, []string{reason + `"a" is left out: ` + tooLarge}, `"a" is left out: ` + tooLarge},
		{"the same", []report.Skip{a}, nil, `"a" is left out: ` + tooLarge},
		{
			"two more, out of order and one twice",
			[]report.Skip{c, b, a, b},
			[]string{reason + `2 paths are left out: "b" (git cannot hold the name), "c\n" (larger than the class allows)`},
			`3 paths are left out: "a" (larger than the class allows), "b" (git cannot hold the name), "c\n" (larger than the class allows)`,
		},
		{"one is committed now", []report.Skip{c, b}, nil, `2 paths are left out: "b" (git cannot hold the name), "c\n" (larger than the class allows)`},
		{
			"it is too large again",
			[]report.Skip{a, b, c},
			[]string{reason + `"a" is left out: ` + tooLarge},
			`3 paths are left out: "a" (larger than the class allows), "b" (git cannot hold the name), "c\n" (larger than the class allows)`,
		},
		{
			"for another reason", []report.Skip{{Path: "a", Why: "the driver may not read it"}},
			[]string{reason + `"a" is left out: the driver may not read it`}, `"a" is left out: the driver may not read it`,
		},
		{"nothing again", nil, nil, ""},
		{"nothing still", nil, nil, ""},
	} {
		v.Skipped(step.skipped)
		s.wantPosts(step.posts...)
		health := ""
		if reasons := v.Abnormal(); len(reasons) > 0 {
			health = reasons[0].Message
			wantVerdict(t, v, "FileSkipped")
		}
		if health != step.health {
			t.Errorf("%s: the health is %q, want %q", step.name, health, step.health)
		}
		s.wantScrape("git_csi_skipped_files", fmt.Sprintf(`git_csi_skipped_files{claim="config",namespace="shop"} %d`, distinct(step.skipped)))
	}
	s.wantLogged("it is right again", 1)
}

func distinct(skips []report.Skip) int {
	set := map[report.Skip]bool{}
	for _, skip := range skips {
		set[skip] = true
	}
	return len(set)
}

func TestManySkipped(t *testing.T) {
	s := newStation(t)
	v := s.Volume(shop())
	var skips []report.Skip
	for n := range 20_000 {
		skips = append(skips, report.Skip{Path: fmt.Sprintf("%05d-%s", n, strings.Repeat("x", 300)), Why: tooLarge})
	}
	v.Skipped(skips)
	posted := s.posts.take()
	if len(posted) != 1 || len(posted[0]) > 1100 || !strings.HasSuffix(posted[0], " and 9995 more") || strings.Count(posted[0], tooLarge) != 5 {
		t.Errorf("posted %q", posted)
	}
	v.Skipped(skips)
	s.wantPosts()
	s.wantScrape("git_csi_skipped_files", `git_csi_skipped_files{claim="config",namespace="shop"} 20000`)
	if message := v.Abnormal()[0].Message; !strings.HasPrefix(message, "20000 paths are left out: ") || !strings.HasSuffix(message, " and 19995 more") {
		t.Errorf("the health says %q", message)
	}
	// A pod that comes later hears of all.
	v.AddPod(web())
	if posted := s.posts.take(); len(posted) != 1 || !strings.HasPrefix(posted[0], "Pod/web Warning GitVolumeFileSkipped: 20000 paths") {
		t.Errorf("posted %q", posted)
	}
}
