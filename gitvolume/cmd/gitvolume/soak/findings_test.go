//go:build soak

package soak

import (
	"fmt"
	"sync"
)

// mostFindings is how many are told in full: one cause may have very many.
const mostFindings = 40

// findings are what was found to be wrong, by whomever.
type findings struct {
	// tell is called with each as it is found.
	tell  func(text string)
	mu    sync.Mutex
	texts []string
	count int
}

func (f *findings) add(format string, arguments ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := fmt.Sprintf(format, arguments...)
	f.tell(text)
	if f.count++; f.count <= mostFindings {
		f.texts = append(f.texts, text)
	}
}

func (f *findings) all() (texts []string, count int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.texts...), f.count
}
