package main

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	rows := []struct{ line, want string }{
		{"up", ""},
		{"images", ""},
		{"install", ""},
		{"images pernode=v1 other", ""},
		{"stop node-1", ""},
		{"exec node-1 -- sh -c true", ""},
		{"bogus", `there is no command "bogus": want one of up, build, down, status, env, images, install, stop, start, exec`},
		{"Up", `there is no command "Up"`},
		{"up now", `"cluster up now" does not fit: want "cluster up"`},
		{"stop", `"cluster stop" does not fit: want "cluster stop NODE"`},
		{"start node-1 node-2", `want "cluster start NODE"`},
		{"exec node-1", `want "cluster exec NODE COMMAND..."`},
	}
	for _, row := range rows {
		t.Run(row.line, func(t *testing.T) {
			words := strings.Fields(row.line)
			c, rest, err := parse(words)
			if row.want == "" {
				if err != nil || c.name != words[0] || len(rest) != len(words)-1 {
					t.Fatalf("got %q with %q, %v", c.name, rest, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %v, want one line with %q", err, row.want)
			}
		})
	}
}

func TestUsageHasEveryCommand(t *testing.T) {
	_, _, err := parse(nil)
	if err == nil {
		t.Fatal("no command is a command")
	}
	for _, c := range commands() {
		if !strings.Contains(err.Error(), "\n  "+c.line()) || !strings.Contains(err.Error(), c.about) {
			t.Errorf("%s is not in\n%v", c.name, err)
		}
	}
}
