package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/keyedmutex"
)

const (
	// defaultMemory is what one process may allocate. Receiving ten million objects
	// takes git less than 1 GiB of it.
	defaultMemory   = 2 << 30
	defaultStall    = time.Minute
	defaultDecision = 5 * time.Minute
	defaultGrace    = 5 * time.Second
	// longestDirectory leaves room for the names of a run's sockets, whose whole path
	// may have 107 bytes.
	longestDirectory = 70
	// bundle is where Debian and what is built on it keep all certificates in one file.
	bundle = "/etc/ssl/certs/ca-certificates.crt"
)

// Settings are what a Command needs. Only Executable and Directory are required.
type Settings struct {
	// Executable is the driver's own program, whose main calls Child first thing.
	Executable string
	// Directory is for sockets and git's empty configuration: this process's alone, at
	// most 70 bytes long, made 0700 if it is missing. It never holds a secret.
	Directory string
	// Environment is the process's own, as os.Environ gives it: PATH and the variables
	// that name proxies are taken from it and nothing else.
	Environment []string
	// Memory bounds what one process of a run allocates, in bytes; 0 is 2 GiB.
	Memory int64
	// Stall ends a run whose connection carries no byte, and whose git neither says
	// anything of its progress nor works by itself, for so long; 0 is 60 s.
	Stall time.Duration
	// Decision ends a push of which the remote does not say what becomes of it, so long after
	// it was sent, though it keeps the connection alive or works without a word; 0 is 5 min.
	Decision time.Duration
	// Grace is what a run has between SIGTERM and SIGKILL; 0 is 5 s.
	Grace time.Duration
	// Room returns an error while there is no room for more than a little that is
	// fetched: it ends a fetch that has received over 64 MiB. nil: there always is. It is
	// called by many goroutines.
	Room func() error
}

// Command runs git. It may be used by many goroutines.
type Command struct {
	settings Settings
	path     string
	proxies  proxies
	config   string // git's global configuration: an empty file
	home     string // an empty directory
	roles    string // a directory of links to Executable, one a role
	runs     string // a directory for each run
	bundled  bool   // the machine has bundle
	// repositories keeps runs that write one repository apart: what one of them left
	// behind is then known to be nobody's.
	repositories keyedmutex.Mutex
	// collections give way to fetches that somebody waits for.
	collections collections
	looks       *Looks

	mu sync.Mutex
	// singly holds when a remote, by its URL, was seen not to take refs atomically.
	singly map[string]time.Time
}

// New prepares the directory. What an earlier process that was killed left of its runs
// is ended before it returns, and removed. The process becomes the one that orphans below
// it fall to (PR_SET_CHILD_SUBREAPER), so that a helper of git that outlives git can be
// ended and waited for.
func New(settings Settings) (*Command, error) {
	if len(settings.Directory) > longestDirectory {
		return nil, fmt.Errorf("directory %q of the git command has %d bytes, at most %d leave room for its sockets",
			settings.Directory, len(settings.Directory), longestDirectory)
	}
	if !filepath.IsAbs(settings.Executable) || !filepath.IsAbs(settings.Directory) {
		return nil, fmt.Errorf("%q and %q of the git command have to be absolute paths", settings.Executable, settings.Directory)
	}
	c := &Command{
		settings: settings,
		config:   filepath.Join(settings.Directory, "gitconfig"),
		home:     filepath.Join(settings.Directory, "home"),
		roles:    filepath.Join(settings.Directory, "roles"),
		runs:     filepath.Join(settings.Directory, "runs"),
		singly:   map[string]time.Time{},
	}
	if c.settings.Memory == 0 {
		c.settings.Memory = defaultMemory
	}
	if c.settings.Stall == 0 {
		c.settings.Stall = defaultStall
	}
	if c.settings.Decision == 0 {
		c.settings.Decision = defaultDecision
	}
	if c.settings.Grace == 0 {
		c.settings.Grace = defaultGrace
	}
	_, err := os.Stat(bundle)
	c.bundled = err == nil
	c.proxies = proxiesOf(settings.Environment)
	c.path = searchPath(settings.Environment)
	if err := c.endEarlier(); err != nil {
		return nil, err
	}
	if err := c.prepare(); err != nil {
		return nil, fmt.Errorf("prepare the git command's directory: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("have orphans of git fall to this process: %w", err)
	}
	c.looks = NewLooks(c)
	return c, nil
}

// Looks are the looks that the Command makes for several at once.
func (c *Command) Looks() *Looks { return c.looks }

// CheckGit tells whether a Command with the environment would find git.
func CheckGit(environment []string) error {
	for _, dir := range filepath.SplitList(searchPath(environment)) {
		if _, err := exec.LookPath(filepath.Join(dir, "git")); err == nil && filepath.IsAbs(dir) {
			return nil
		}
	}
	return errors.New("git is not on the PATH: install git")
}

// searchPath is where programs are looked for.
func searchPath(environment []string) string {
	if path := variable(environment, "PATH"); path != "" {
		return path
	}
	return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

func (c *Command) prepare() error {
	for _, dir := range []string{c.settings.Directory, c.home, c.roles, c.runs} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		if err := os.Chmod(dir, 0o700); err != nil { // A directory needs its x bit.
			return err
		}
	}
	if err := os.WriteFile(c.config, nil, 0o600); err != nil {
		return err
	}
	if err := removeRuns(c.runs); err != nil {
		return err
	}
	for _, role := range []string{roleSSH, roleDial, roleAsk} {
		link := filepath.Join(c.roles, role)
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Symlink(c.settings.Executable, link); err != nil {
			return err
		}
	}
	return nil
}

// removeRuns removes the directories of runs, which hold nothing but sockets.
func removeRuns(dir string) error {
	runs, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := removeRun(filepath.Join(dir, run.Name())); err != nil {
			return err
		}
	}
	return nil
}

func removeRun(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.Remove(dir)
}

// variable is the value of the last entry of an environment with the name.
func variable(environment []string, name string) string {
	value := ""
	for _, entry := range environment {
		if rest, found := strings.CutPrefix(entry, name+"="); found {
			value = rest
		}
	}
	return value
}
