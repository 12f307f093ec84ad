package nodevolume_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// collections is where a driver that is to be killed notes beside its store that a
// collection of garbage begins or ends, one byte each.
const (
	collectionBegins, collectionEnds = "b", "e"
	betweenCollections               = 50 * time.Millisecond
)

// tidyUntilKilled tidies the store again and again, as if an hour passed each time.
func (p *process) tidyUntilKilled(dir string) {
	for {
		if err := p.tidy(dir); err != nil {
			p.log.Error("tidy the store", "error", err)
		}
		time.Sleep(betweenCollections)
	}
}

func (p *process) tidy(dir string) error {
	for _, name := range []string{"about.json", "collected"} {
		found, err := filepath.Glob(filepath.Join(dir, "repos", "*", name))
		if err != nil {
			return err
		}
		for _, path := range found {
			then := time.Now().Add(-2 * time.Hour)
			if err := os.Chtimes(path, then, then); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return p.store.Tidy(context.Background(), func(ctx context.Context, repository string) error {
		if err := note(dir, collectionBegins); err != nil {
			return err
		}
		return errors.Join(p.command.GC(ctx, repository), note(dir, collectionEnds))
	})
}

func note(dir, what string) error {
	file, err := os.OpenFile(dir+".collections", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(what)
	return errors.Join(err, file.Close())
}

// collected expects that garbage was collected in the lives of the drivers that were
// killed, and that it can be now.
func (p *process) collected(dir string) {
	p.t.Helper()
	text, err := os.ReadFile(dir + ".collections")
	check(p.t, err)
	begun, ended := strings.Count(string(text), collectionBegins), strings.Count(string(text), collectionEnds)
	p.t.Logf("%d collections of garbage were begun, and %d of them killed", begun, begun-ended)
	if begun == 0 {
		p.t.Error("no garbage was collected")
	}
	check(p.t, p.tidy(dir))
	for _, repository := range p.repositories() {
		packs, err := filepath.Glob(filepath.Join(repository, "objects", "pack", "*.pack"))
		check(p.t, err)
		var left []string
		for _, unfinished := range []string{"tmp_pack_*", "tmp_idx_*", "tmp_rev_*", ".tmp-*"} {
			found, err := filepath.Glob(filepath.Join(repository, "objects", "pack", unfinished))
			check(p.t, err)
			left = append(left, found...)
		}
		if len(packs) > 2 || len(left) > 0 {
			p.t.Errorf("after a collection there are the packs %q, and unfinished %q", packs, left)
		}
	}
}
