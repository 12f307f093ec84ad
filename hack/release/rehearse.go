package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"liken.sh/hack/cluster/image"
)

// rehearse does all that a release does, of what is committed, in a clone that is thrown
// away: into a registry on this machine, signed with a key that is made for it. What is
// left of it are base images, in the user's cache.
func rehearse(r repository, driver, wanted string) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("building images needs root: become root, with Go on the PATH")
	}
	// An interrupt ends what runs at the moment, and so this too, but in order.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	began := time.Now()
	cache, unlock, err := lockCache()
	if err != nil {
		return err
	}
	defer unlock()
	work := filepath.Join(cache, "rehearsal")
	// Whoever was killed left it. The lock says that nobody is at work.
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("make room for a rehearsal: %w", err)
	}
	defer removeAll(work, &err)
	if err := os.MkdirAll(work, 0o755); err != nil {
		return fmt.Errorf("make room for a rehearsal: %w", err)
	}
	clone, err := r.clone(filepath.Join(work, "clone"))
	if err != nil {
		return err
	}
	say("preparing the release in a clone of what is committed")
	release, err := prepare(clone, driver, wanted, began)
	if err != nil {
		return err
	}
	if _, err := clone.git("tag", release.String()); err != nil {
		return err
	}
	notes, err := clone.released(release.tag)
	if err != nil {
		return err
	}
	fmt.Print("\n", notes, "\n")
	p := publication{repository: clone, tag: release.tag, plainHTTP: true, output: clone.output(release.tag), work: filepath.Join(work, "publish")}
	for _, dir := range []string{p.output, p.work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make room for a rehearsal: %w", err)
		}
	}
	leftOut, err := p.buildForRehearsal(cache, work)
	if err != nil {
		return err
	}
	if err := p.publishLocally(); err != nil {
		return err
	}
	leftOut = append(leftOut, "signing with a workflow's identity, and the entry in the public log, which need the workflow")
	fmt.Println()
	for _, what := range leftOut {
		fmt.Println("left out: " + what)
	}
	fmt.Printf("release-dry-run %s: passed in %s, for %s\n", release, time.Since(began).Round(time.Second), strings.Join(p.architectures, " and "))
	return nil
}

// clone makes a checkout of the commit at hand, on the branch that releases are made of.
func (r repository) clone(dir string) (repository, error) {
	if _, err := r.git("clone", "--quiet", "--no-checkout", ".", dir); err != nil {
		return repository{}, err
	}
	head, err := r.git("rev-parse", "HEAD")
	if err != nil {
		return repository{}, err
	}
	clone := repository{root: dir}
	for _, arguments := range [][]string{
		{"checkout", "--quiet", "-B", mainBranch, head},
		{"config", "user.name", "A rehearsal"},
		{"config", "user.email", "rehearsal@example.com"},
		{"config", "commit.gpgSign", "false"},
	} {
		if _, err := clone.git(arguments...); err != nil {
			return repository{}, err
		}
	}
	return clone, nil
}

func lockCache() (dir string, unlock func(), err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", nil, fmt.Errorf("find the cache: %w", err)
	}
	dir = filepath.Join(cache, "liken-release")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, fmt.Errorf("make the cache: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", nil, fmt.Errorf("lock the cache: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return "", nil, errors.Join(fmt.Errorf("another rehearsal runs, which has locked %s: %w", lock.Name(), err), lock.Close())
	}
	return dir, func() { _ = lock.Close() }, nil
}

// buildForRehearsal builds what this machine can, from base images that are made here, and
// tells what it cannot.
func (p *publication) buildForRehearsal(cache, work string) (leftOut []string, err error) {
	builder := image.Builder{Storage: filepath.Join(cache, "buildah"), Work: work}
	if err := p.bases(builder, cache, work); err != nil {
		return nil, err
	}
	for _, architecture := range architectures() {
		file, err := p.dockerfile(p.tag, architecture)
		if err != nil {
			return nil, err
		}
		// The git driver's image installs packages, which runs programs of its architecture.
		if p.driver == "gitvolume" && architecture != runtime.GOARCH {
			say("compiling for %s", architecture)
			file.Options = append(file.Options, "--target", "build")
			if err := builder.Try(file); err != nil {
				return nil, err
			}
			leftOut = append(leftOut, "the image for "+architecture+", of which only the driver was built: it is made on a machine of that architecture")
			continue
		}
		say("building the image for %s", architecture)
		if err := builder.Build(file, archive(p.output, architecture)); err != nil {
			return nil, err
		}
		if err := builder.Remove(file.Name); err != nil {
			return nil, err
		}
		p.architectures = append(p.architectures, architecture)
	}
	return leftOut, nil
}

// bases stand in for what registries have, as they do for the local cluster.
func (p *publication) bases(builder image.Builder, cache, work string) error {
	stock := image.Stock{Archives: filepath.Join(cache, "bases"), Work: work, Say: func(line string) { say("%s", line) }}
	toolchain, err := command{dir: p.root}.run("go", "env", "GOROOT", "GOVERSION")
	if err != nil {
		return err
	}
	goroot, goversion, _ := strings.Cut(toolchain, "\n")
	golang, err := stock.Golang(goroot, goversion)
	if err != nil {
		return err
	}
	if err := builder.Base(golang, image.GolangName); err != nil {
		return err
	}
	if p.driver != "gitvolume" {
		return nil
	}
	debian, err := stock.Debian()
	if err != nil {
		return err
	}
	return builder.Base(debian, image.DebianName)
}

// publishLocally publishes into a registry that lives as long as this takes.
func (p *publication) publishLocally() (err error) {
	say("building cosign, crane and helm, unless they are there")
	programs, err := findTools(p.root, p.work)
	if err != nil {
		return err
	}
	host, stop, err := localRegistry(programs, filepath.Join(p.work, "registry"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	p.registry = host + "/rehearsal"
	if p.signer, err = throwAwayKey(programs, p.work); err != nil {
		return err
	}
	if err := p.publish(); err != nil {
		return err
	}
	return p.refusesStrangers()
}

// refusesStrangers makes sure that what was verified could have failed.
func (p *publication) refusesStrangers() error {
	dir := filepath.Join(p.work, "stranger")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make room for a key: %w", err)
	}
	stranger, err := throwAwayKey(p.tools, dir)
	if err != nil {
		return err
	}
	subject := p.registry + "/" + p.driver + ":" + p.version
	if err := stranger.verify(subject); err == nil {
		return fmt.Errorf("%s was verified with a key that did not sign it", subject)
	}
	return nil
}
