package history

import (
	"errors"
	"fmt"
	"sync"

	git "github.com/libgit2/git2go/v34"
)

// cacheSize bounds the objects that libgit2 keeps in memory, over all repositories of
// the process together.
const cacheSize = 32 << 20

// settle gives libgit2 the settings it keeps once per process. All that is global in
// libgit2 is set here and nowhere else, before the first repository is opened:
//
//   - files of a repository are synced, with the directories they are renamed in;
//   - no configuration of the machine or of a user is read, which could change what
//     is written or where;
//   - the cache of objects is small, since a node has many repositories and each
//     object is rarely read twice;
//   - it does not verify objects against their id when it reads them: see verify, which
//     does so.
//
// What is right by default stays: objects that another names have to exist when it is
// written, and a repository has to belong to the process's own user, for which git2go has
// no switch.
//
//nolint:gochecknoglobals // The state is libgit2's, one per process; this is its mirror.
var settle = sync.OnceValue(func() error {
	errs := []error{git.EnableFsyncGitDir(true), git.SetCacheMaxSize(cacheSize), git.EnableStrictHashVerification(false)}
	for _, level := range []git.ConfigLevel{git.ConfigLevelProgramdata, git.ConfigLevelSystem, git.ConfigLevelXDG, git.ConfigLevelGlobal} {
		errs = append(errs, git.SetSearchPath(level, ""))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("set up libgit2: %w", err)
	}
	return nil
})
