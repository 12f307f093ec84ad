package remote

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"liken.sh/csicommon/errortext"
	textquote "liken.sh/csicommon/quote"
)

// run is one run of git.
type run struct {
	// args follow "git".
	args []string
	// dir is the bare repository it works in; empty for none.
	dir string
	// work is the work tree, where git also starts: it looks for attributes from there on.
	// Empty for none.
	work string
	// remote is what it talks to; nil for nothing.
	remote *Remote
	config [][2]string
	stdin  io.Reader
	// stdout is where its output goes, nil if that is for people; an error of its Write
	// ends the run.
	stdout io.Writer
	// verdicts takes its output first, which is for people too; nil unless it is a push.
	verdicts *verdicts
	progress func(Progress)
	idle     bool
	// receives tells that it brings objects into dir, for which there has to be room.
	receives bool
}

// ended is how a run that could be started ended.
type ended struct {
	status int
	facts  facts
	words  string
	// shallow tells that a fetch left a ref as it was, as the remote lacks some of its history.
	shallow bool
}

// notStarted is the status of a git that was not run.
const notStarted = -1

// do runs git and gives a Failure unless it ended well.
func (c *Command) do(ctx context.Context, r run) (ended, error) {
	e, err := c.start(ctx, &r)
	if err == nil && e.status == 0 && !e.facts.stalled {
		if err := answeredByGit(r.remote, e); err != nil {
			return e, fmt.Errorf("run git %s: %w", r.args[0], err)
		}
		return e, nil
	}
	var broken *startError
	if errors.As(err, &broken) {
		return e, fmt.Errorf("run git %s: %w", r.args[0], err)
	}
	kind, cause := e.facts.kind(r.remote, err)
	if cause == nil {
		cause = explained(r.remote)
	}
	return e, fmt.Errorf("run git %s: %w", r.args[0], &Failure{
		Kind: kind, Cause: cause, Words: e.words,
		After: e.facts.retryAfter, HTTPStatus: e.facts.httpStatus, received: e.facts.received,
		refused: r.refused(e), killed: e.status > diedStatus,
		unsent: e.facts.connected == 0 && !e.facts.proxied && r.remote != nil && r.remote.URL.Scheme != "file",
	})
}

// diedStatus is that of a git which gave up; those above are of one that a signal ended.
const diedStatus = 128

// refused tells whether the remote itself has said no, and how it ended is not the doing of
// a process here that was killed: it rejects a ref, an HTTP server answers so, or the
// command that ssh started there ends so. A receive-pack whose client is gone gives up as
// git does.
func (r *run) refused(e ended) bool {
	switch {
	case r.verdicts == nil || e.status > diedStatus:
		return false
	case r.verdicts.rejects():
		return true
	}
	return e.facts.httpStatus/100 == 4 || e.facts.sshStatus > 0 && e.facts.sshStatus < diedStatus
}

// errNotGit says that a web server answered of which git made what it could.
var errNotGit = errors.New("what answers does not speak git's protocol")

// answeredByGit refuses what git took for a repository of plain files: a page to log in
// would be one without any ref, into which a volume would push as its first.
func answeredByGit(remote *Remote, e ended) error {
	if remote == nil || !remote.URL.IsHTTP() || e.facts.speaksGit {
		return nil
	}
	return &Failure{Kind: ErrFailed, Cause: errNotGit, Words: e.words, HTTPStatus: e.facts.httpStatus}
}

// explained is what the session knows of the failure.
func explained(remote *Remote) error {
	if remote == nil {
		return nil
	}
	if explainer, ok := remote.Session.(Explainer); ok && explainer.Explanation() != "" {
		return errors.New(explainer.Explanation())
	}
	return nil
}

// startError says that no process was started.
type startError struct{ err error }

func (s *startError) Error() string { return s.err.Error() }
func (s *startError) Unwrap() error { return s.err }

// start makes what the run needs and runs it. The error is a startError, or says why
// the run was ended.
func (c *Command) start(ctx context.Context, r *run) (ended, error) {
	if ctx.Err() != nil {
		return ended{}, endReason(ctx)
	}
	if err := c.permitted(ctx, r.remote); err != nil {
		return ended{status: notStarted, facts: facts{refused: err, sshStatus: -1}}, nil
	}
	place, err := os.MkdirTemp(c.runs, "")
	if err != nil {
		return ended{}, &startError{fmt.Errorf("make a directory for the run: %w", errortext.WithoutPath(err))}
	}
	defer func() { _ = removeRun(place) }() // What is left goes at the next start.
	var permit Permit
	if r.remote != nil {
		permit = r.remote.Permit
	}
	link := newLink(permit)
	defer link.close()
	environment, err := c.environment(r, link, place)
	if err != nil {
		return ended{}, &startError{err}
	}
	said := &words{alive: link.alive, progress: r.follow(link), redact: c.redactor(r.remote)}
	p := &process{
		command: c, run: r, link: link, said: said,
		environment: append(environment, runVariable+"="+filepath.Base(place)),
		mark:        runVariable + "=" + filepath.Base(place),
	}
	status, err := p.do(ctx)
	if r.verdicts != nil {
		_, _ = said.Write(r.verdicts.text)
	}
	shown := said.shown()
	return ended{status: status, facts: link.learned(), words: shown, shallow: said.isShallow()}, err
}

// follow adds what git cannot say to its progress.
func (r *run) follow(l *link) func(Progress) {
	if r.progress == nil {
		return nil
	}
	return func(p Progress) {
		p.Bytes = l.received.Load()
		r.progress(p)
	}
}

// environment is all that git gets: nothing of the driver's own but PATH. It starts the
// listeners that it names.
func (c *Command) environment(r *run, l *link, place string) ([]string, error) {
	environment := []string{
		"PATH=" + c.path,
		"HOME=" + c.home,
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + c.config,
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_TERMINAL_PROMPT=0",
		"SSH_ASKPASS_REQUIRE=never",
	}
	if r.dir != "" {
		environment = append(environment, "GIT_DIR="+r.dir)
	}
	if r.work != "" {
		environment = append(environment, "GIT_WORK_TREE="+r.work)
	}
	config := append(ownConfig(), r.config...)
	if r.remote == nil {
		return append(environment, configVariables(config)...), nil
	}
	gateway, err := l.listen(place)
	if err != nil {
		return nil, err
	}
	environment = append(environment, gatewayVariable+"="+gateway, "GIT_ASKPASS="+filepath.Join(c.roles, roleAsk))
	more, err := c.reach(r.remote, l)
	if err != nil {
		return nil, err
	}
	config = append(config, more...)
	if session := r.remote.Session; session != nil {
		environment = append(environment, session.Environment()...)
		config = append(config, session.GitConfig()...)
	}
	switch {
	case r.remote.URL.Scheme == "ssh":
		ssh, err := c.ssh(r.remote.Session)
		if err != nil {
			return nil, err
		}
		environment = append(environment, ssh...)
	case r.remote.URL.Scheme == "git":
		// Of core.gitProxy the first counts, which is the repository's.
		environment = append(environment, "GIT_PROXY_COMMAND="+filepath.Join(c.roles, roleDial))
	case r.remote.URL.IsHTTP():
		environment = append(environment, "GIT_TRACE_CURL="+strconv.Itoa(traceDescriptor), "GIT_TRACE_CURL_NO_DATA=1", "GIT_TRACE_REDACT=1")
	}
	return append(environment, configVariables(config)...), nil
}

// reach is the configuration by which git reaches the remote through the driver, or by
// the proxy that the environment names, and in no other way.
func (c *Command) reach(remote *Remote, l *link) ([][2]string, error) {
	protocols, err := protocols(remote.URL)
	if err != nil {
		return nil, err
	}
	config := [][2]string{{"protocol.allow", "never"}}
	for _, protocol := range protocols {
		config = append(config, [2]string{"protocol." + protocol + ".allow", "always"})
	}
	if !remote.URL.IsHTTP() {
		return config, nil
	}
	config = append(config, [2]string{"credential.helper", ""}) // forgets those of the repository
	if c.bundled {
		// Debian's curl reads the bundle and then each of its certificates again, from a
		// directory: 200 ms of every connection.
		config = append(config, [2]string{"http.sslCAPath", c.home})
	}
	proxy := c.proxies.proxy(remote.URL)
	if proxy == "" {
		proxy, err = l.socks(rand.Text())
		if err != nil {
			return nil, err
		}
	} else {
		l.note(func(f *facts) { f.proxied = true })
		// The link sees no byte then: curl itself has to end what does not move.
		seconds := strconv.Itoa(max(1, int(c.settings.Stall.Seconds())))
		config = append(config, [2]string{"http.lowSpeedLimit", "1"}, [2]string{"http.lowSpeedTime", seconds})
	}
	return append(config, [2]string{"http.proxy", proxy}), nil
}

// ssh is the environment that has git run ssh by way of the driver's program, and ssh
// connect by way of the driver.
func (c *Command) ssh(session Session) ([]string, error) {
	options := []string{}
	if session != nil {
		options = append(options, session.SSHOptions()...)
	}
	dial := strings.ReplaceAll(textquote.Shell(filepath.Join(c.roles, roleDial)), "%", "%%")
	options = append(options, "-o", "ProxyCommand="+dial+" '%h' %p", "-o", "ProxyUseFdpass=yes")
	text, err := json.Marshal(options)
	if err != nil {
		return nil, err
	}
	return []string{
		// core.sshCommand of the repository goes before GIT_SSH, but not before this.
		"GIT_SSH_COMMAND=" + textquote.Shell(filepath.Join(c.roles, roleSSH)),
		"GIT_SSH_VARIANT=ssh",
		optionsVariable + "=" + string(text),
	}, nil
}
