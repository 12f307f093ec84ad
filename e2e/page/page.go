// Package page takes out of the documentation what its readers copy, so that the
// tests run the very text that is printed.
//
// It must never change that text.
package page

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

var (
	fence   = regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```$")
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// Blocks returns the fenced blocks of that language, such as "yaml" or "sh", below
// the heading and above the next. That there is none is an error.
func Blocks(file, under, language string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	section, err := section(string(text), under)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var blocks []string
	for _, block := range fence.FindAllStringSubmatch(section, -1) {
		if block[1] == language {
			blocks = append(blocks, block[2])
		}
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("%s: %q has no block of %q", file, under, language)
	}
	return blocks, nil
}

// Step is what a reader of a tutorial does next.
type Step struct {
	// Language is that of the block, such as "yaml" or "sh", and Text what is in it.
	Language, Text string
	// File is the name under which the reader is to save the block, empty when it is to be
	// run.
	File string
	// Prints is what a command prints in the end, empty when that is not said. Until then
	// the reader repeats it.
	Prints string
}

// marked is a block with what is noted about it for the tests: before it the file that a
// reader makes of it, or that it is not for the tests, and after it what it prints.
var marked = regexp.MustCompile("(?m)(?s:^<!-- (file: [^\\n]+?|not run) -->\n\n)?(?s:^```([a-z]+)\n(.*?)^```$)(?:\n\n<!-- wait: (.+?) -->$)?")

// Steps returns what a tutorial has its reader do, in order. There is one at least.
func Steps(file string) ([]Step, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the tutorial: %w", err)
	}
	var steps []Step
	for _, block := range marked.FindAllStringSubmatch(string(text), -1) {
		name, isFile := strings.CutPrefix(block[1], "file: ")
		if block[1] != "" && !isFile {
			continue
		}
		steps = append(steps, Step{Language: block[2], Text: block[3], File: name, Prints: block[4]})
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("%s has no step", file)
	}
	return steps, nil
}

// section is the text between the heading and the next. A # in a block is a comment.
func section(text, under string) (string, error) {
	blank := fence.ReplaceAllStringFunc(text, func(block string) string { return strings.Repeat(" ", len(block)) })
	for _, at := range heading.FindAllStringSubmatchIndex(blank, -1) {
		if blank[at[2]:at[3]] != under {
			continue
		}
		end := len(text)
		if next := heading.FindStringIndex(blank[at[1]:]); next != nil {
			end = at[1] + next[0]
		}
		return text[at[1]:end], nil
	}
	return "", fmt.Errorf("there is no heading %q", under)
}
