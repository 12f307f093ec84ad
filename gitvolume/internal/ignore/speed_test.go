package ignore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/ignore"
)

// Each of these takes exponential time, or nearly, where every combination is tried:
// a program that writes one into its tree would stop the driver.
func TestHostilePatterns(t *testing.T) {
	name := strings.Repeat("a", 255)
	path := strings.Repeat("a/", 2000) + "a"
	stars := strings.Repeat("*", 10_000)
	for pattern, matching := range map[string]string{
		strings.Repeat("*a", 20) + "*b":           name + "b",
		strings.Repeat("*a", 100_000) + "*b":      "",
		strings.Repeat("*?", 100) + "b":           name + "b",
		strings.Repeat("*[a-z]", 100) + "*[b]":    name + "b",
		stars + "a" + stars + "b":                 name + "b",
		strings.Repeat("**/a/", 20) + "b":         path + "/b",
		strings.Repeat("**/", 20_000) + "b":       path + "/b",
		strings.Repeat("**/*a*/", 20) + "*a*b":    path + "/ab",
		strings.Repeat("**/?/", 100) + "**/b":     path + "/b",
		strings.Repeat("a/**/", 100) + "[b]":      path + "/b",
		strings.Repeat(`**\/`, 100) + "[b]":       path + "/b",
		"a/**/" + strings.Repeat("*/", 900) + "b": path + "/b",
		strings.Repeat("**/a/a/", 900) + "b":      path + "/b",
		"[" + strings.Repeat("a-z", 30_000):       "",
		strings.Repeat(`[\a-z[:alpha:]]`, 5000):   "",
	} {
		start := time.Now()
		// Each has to be tried, so all names stay that end otherwise.
		level := ignore.NewTree(ignore.Parse([]byte(pattern)), nothing)
		for _, path := range []string{name, path} {
			if v, _ := level.Ignored(path, false); v.Ignored() {
				t.Errorf("%.40q ignores %.40q", pattern, path)
			}
		}
		if matching != "" {
			trimmed, isDir := strings.CutSuffix(matching, "/")
			if v, _ := level.Ignored(trimmed, isDir); !v.Ignored() {
				t.Errorf("%.40q does not ignore %.40q", pattern, matching)
			}
		}
		// Some milliseconds; a slow machine has a thousand times that.
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%.40q took %s", pattern, took)
		}
	}
}

func nothing(string) (ignore.Patterns, error) { return ignore.Patterns{}, nil }

// hundred are patterns such as projects have, a third of them plain names.
func hundred() ignore.Patterns {
	var lines []string
	for i := range 33 {
		lines = append(lines, fmt.Sprintf("name%d/", i), fmt.Sprintf("*.ext%d", i), fmt.Sprintf("/dir%d/sub%d", i%10, i))
	}
	return ignore.Parse([]byte(strings.Join(append(lines, "*~"), "\n")))
}

func TestNoAllocation(t *testing.T) {
	level := ignore.Root(ignore.FromList([]string{"*.tmp", "a/**/b", "**/x/*.o"}), hundred()).
		Enter("dir3", ignore.Patterns{}).Enter("x", ignore.Parse([]byte("[ab]*c\n")))
	for _, name := range []string{"plain", "file.ext0", "abc", "y.o", "name7"} {
		if n := testing.AllocsPerRun(100, func() { _ = level.Ignored(name, true).Ignored() }); n != 0 {
			t.Errorf("%v allocations for %q", n, name)
		}
	}
}

// BenchmarkIgnored is the cost of one name at each of these levels.
func BenchmarkIgnored(b *testing.B) {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("file%d.go", i))
	}
	root := ignore.Root(ignore.Patterns{}, hundred())
	for name, level := range map[string]*ignore.Level{
		"none":         ignore.Root(ignore.Patterns{}, ignore.Patterns{}),
		"100 patterns": root,
		"100 patterns, two directories down": root.Enter("a", ignore.Patterns{}).
			Enter("b", ignore.Patterns{}),
		"100 patterns and 3 files more": root.Enter("a", ignore.Parse([]byte("*.o\n/x"))).
			Enter("b", ignore.Parse([]byte("out/\n"))).Enter("c", ignore.Parse([]byte("[ab]*"))),
		"**/a/b": ignore.Root(ignore.Patterns{}, ignore.Parse([]byte("**/a/b"))).Enter("a", ignore.Patterns{}),
		"a?c*e":  ignore.Root(ignore.Patterns{}, ignore.Parse([]byte("f?l*z"))),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if level.Ignored(names[i%len(names)], false).Ignored() {
					b.Fatal("ignored")
				}
				i++
			}
		})
	}
}

// BenchmarkEnter is the cost of one more directory.
func BenchmarkEnter(b *testing.B) {
	root := ignore.Root(ignore.Patterns{}, hundred())
	b.ReportAllocs()
	for b.Loop() {
		root.Enter("source", ignore.Patterns{})
	}
}

// BenchmarkHostile is the worst that a pattern is known to cost for one name.
func BenchmarkHostile(b *testing.B) {
	for name, pattern := range map[string]string{
		"one name":  strings.Repeat("*a", 60) + "*b",
		"directory": "**/" + strings.Repeat("a/", 900) + "b",
	} {
		tree := ignore.NewTree(ignore.Parse([]byte(pattern)), nothing)
		path := strings.Repeat("a/", 1900) + strings.Repeat("a", 255)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if v, _ := tree.Ignored(path, false); v.Ignored() {
					b.Fatal("ignored")
				}
			}
		})
	}
}

// BenchmarkParse has the file that takes the most memory for its size.
func BenchmarkParse(b *testing.B) {
	for name, line := range map[string]string{"names": "%03x\n", "wild": "*%03x\n", "places": "/%03x\n"} {
		var content strings.Builder
		for i := range 100_000 {
			fmt.Fprintf(&content, line, i)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(content.Len()))
			b.ReportAllocs()
			for b.Loop() {
				ignore.Parse([]byte(content.String()))
			}
		})
	}
}
