//go:build soak

package soak

import (
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// file is what an application has at a path.
type file struct {
	mode    fs.FileMode // Type and permissions. Those of a link do not count.
	content string      // Of a link, where it leads.
	entry   int         // What put it there.
}

// blob is the id that git gives the content.
func (f file) blob() string {
	return fmt.Sprintf("%x", sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(f.content), f.content))))
}

// entry is one thing that an application did.
type entry struct {
	Number int
	Time   time.Time
	Did    string
	Path   string
	// Blob is the content afterwards; empty: the path is gone.
	Blob  string
	Mode  string
	Error string `json:",omitempty"`
}

// journal is what one application knows: all that it did, and what is to be there now. It
// lies outside of the volume.
type journal struct {
	name string

	mu      sync.Mutex
	out     *json.Encoder
	to      *os.File
	entries []entry
	// own are the files that nobody else writes.
	own map[string]file
	// whole are the contents that were there as a whole, and so may be committed, once.
	whole map[string]bool
	// lines are those that were added to files that others write too, by path.
	lines map[string]map[string]int
	// overtaken counts lines of which nobody knows: the file was replaced meanwhile.
	overtaken int
}

func newJournal(name, dir string) (*journal, error) {
	to, err := os.Create(filepath.Join(dir, "journal-"+name))
	if err != nil {
		return nil, err
	}
	return &journal{
		name: name, to: to, out: json.NewEncoder(to),
		own: map[string]file{}, whole: map[string]bool{}, lines: map[string]map[string]int{},
	}, nil
}

// note writes an entry and returns its number; j.mu is held.
func (j *journal) note(did, path string, f *file, failed error) int {
	e := entry{Number: len(j.entries), Time: time.Now(), Did: did, Path: path}
	if f != nil {
		e.Blob, e.Mode = f.blob(), f.mode.String()
	}
	if failed != nil {
		e.Error = failed.Error()
	}
	j.entries = append(j.entries, e)
	_ = j.out.Encode(e) // What cannot be written is in memory still.
	return e.Number
}

// has notes that the path is this now, as a whole unless something failed.
func (j *journal) has(did, path string, f file, failed error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f.entry = j.note(did, path, &f, failed)
	j.own[path] = f
	if failed == nil {
		j.whole[path+"\x00"+f.blob()] = true
	}
}

// lacks notes that nothing is at the path.
func (j *journal) lacks(did, path string, failed error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.note(did, path, nil, failed)
	delete(j.own, path)
}

// line notes a line that was added to a file of everybody's.
func (j *journal) line(path, line string, isOvertaken bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if isOvertaken {
		j.note("was overtaken adding "+line, path, nil, nil)
		j.overtaken++
		return
	}
	number := j.note("added "+line, path, nil, nil)
	if j.lines[path] == nil {
		j.lines[path] = map[string]int{}
	}
	j.lines[path][line] = number
}

// count is how much was done.
func (j *journal) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.entries)
}

// get is what is at a path of its own.
func (j *journal) get(path string) (file, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f, found := j.own[path]
	return f, found
}

// paths are those of its own, sorted.
func (j *journal) paths() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	paths := make([]string, 0, len(j.own))
	for path := range j.own {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// isWhole tells whether the application had the content at the path, in full.
func (j *journal) isWhole(path, blob string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.whole[path+"\x00"+blob]
}

// owns tells whether nobody but the application writes the path.
func (j *journal) owns(path string) bool {
	return strings.HasPrefix(path, j.name+"/") && !strings.HasPrefix(filepath.Base(path), upPrefix)
}

// told is an entry, for who has to look into what became of it.
func (j *journal) told(number int) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	text, err := json.Marshal(j.entries[number])
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// last is the last entry of a path.
func (j *journal) last(path string) string {
	j.mu.Lock()
	number := -1
	for _, e := range slices.Backward(j.entries) {
		if e.Path == path {
			number = e.Number
			break
		}
	}
	j.mu.Unlock()
	if number < 0 {
		return "no entry"
	}
	return j.told(number)
}
