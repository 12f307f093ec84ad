//go:build soak

package soak

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/rig"
	"liken.sh/gitvolume/internal/driver"
	"liken.sh/gitvolume/internal/gittest"
)

// repository is one elsewhere, behind a cable.
type repository struct {
	name   string
	bare   *gittest.Bare
	url    string
	secret map[string]string
	// updates is a file with each change of a ref that a push asked for.
	updates string
}

// newRepository makes one that remembers all that is done to its refs.
func (r *torture) newRepository(name string) *repository {
	bare := gittest.NewBare(r.t)
	updates := filepath.Join(filepath.Dir(bare.Dir), "updates")
	// A push takes a moment, in which a server can be stopped.
	bare.Hook("update", fmt.Sprintf(`echo "$1 $2 $3" >>%s; sleep 0.2`, updates))
	bare.Git("config", "core.logAllRefUpdates", "always")
	bare.Git("config", "gc.auto", "0")
	repository := &repository{name: name, bare: bare, updates: updates}
	r.repositories = append(r.repositories, repository)
	return repository
}

// serveHTTP serves a repository to whoever has the token.
func (r *torture) serveHTTP(repository *repository) {
	root := filepath.Dir(repository.bare.Dir)
	server := gittest.StartHTTP(r.t, root, gittest.HTTPOptions{User: "git", Password: "right", Around: gittest.Whole})
	c := lay(r.t, r.link, strings.TrimPrefix(server.URL(""), "http://"))
	r.cables = append(r.cables, c)
	repository.url = "http://" + c.address + "/" + filepath.Base(repository.bare.Dir)
	repository.secret = map[string]string{"token": "right"}
}

// serveSSH serves it to whoever has the key.
func (r *torture) serveSSH(repository *repository) {
	key := gittest.NewKey(r.t, "ed25519")
	server := gittest.StartSSHD(r.t, gittest.SSHDOptions{AuthorizedKeys: []string{key.Authorized}})
	c := lay(r.t, r.link, fmt.Sprintf("%s:%d", server.Host, server.Port))
	r.cables = append(r.cables, c)
	repository.url = fmt.Sprintf("ssh://%s@%s%s", server.User, c.address, repository.bare.Dir)
	repository.secret = map[string]string{"ssh-privatekey": key.PEM}
}

// newPlugin makes the node. Its store is on the disk that can be filled, if there is one.
func (r *torture) newPlugin() {
	// Sockets have short names.
	for _, name := range []string{"run", "tmp", "logs"} {
		if err := os.Mkdir(filepath.Join(r.place, name), 0o700); err != nil {
			r.t.Fatal(err)
		}
	}
	node := rig.New(r.t, rig.Config{
		Driver: driver.Name, Command: r.program,
		Arguments: []string{"node", "--allow-insecure", "--min-free", "0", "--scan-every", "15s", "--stop-push-timeout", "4s", "--log-level", "debug"},
	})
	node.Store = filepath.Join(r.place, "store")
	if r.hasDisk {
		node.Store = filepath.Join(r.place, diskName, "store")
	}
	node.JoinCluster()
	node.API.PutClass("notes", driver.Name, map[string]string{"push.quiesce": "5s", "push.maxLatency": "8s"})
	node.API.PutClass("plain", driver.Name, map[string]string{"push.quiesce": "5s", "push.maxLatency": "5s", "metadata": "false"})
	r.plugin = &plugin{Node: node, findings: &r.findings, logs: filepath.Join(r.place, "logs")}
}

// program is the one that was built.
func (r *torture) program(arguments ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(r.place, programName), arguments...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+filepath.Join(r.place, "run"), "TMPDIR="+filepath.Join(r.place, "tmp"), "GOTRACEBACK=all")
	return cmd
}

func (r *torture) seat(name string, repository *repository, branch string, mode corev1.PersistentVolumeAccessMode, attributes ...string) *seat {
	volume := kubelet.Volume{
		PV: name, Handle: name, AccessMode: mode, ReadOnly: mode == corev1.ReadOnlyMany,
		Attributes:  map[string]string{"url": repository.url, "ref": branch},
		StageSecret: repository.secret, PublishSecret: repository.secret,
	}
	for i := 0; i < len(attributes); i += 2 {
		volume.Attributes[attributes[i]] = attributes[i+1]
	}
	return &seat{
		volume: volume, repository: repository, branch: branch, plugin: r.plugin, findings: &r.findings,
		random: of(r.seed, "pods of "+name), pods: &r.pods, alive: r.alive,
	}
}

func (r *torture) addWriter(name string, repository *repository, branch, class string) {
	pv := apiserver.Volume(name, driver.Name, name)
	pv.Spec.VolumeAttributesClassName = &class
	r.plugin.API.PutVolume(pv)
	journal, err := newJournal(name, r.place)
	if err != nil {
		r.t.Fatal(err)
	}
	r.writers = append(r.writers, &writer{
		seat:        r.seat(name, repository, branch, corev1.ReadWriteOncePod),
		application: &application{journal: journal, findings: &r.findings, random: of(r.seed, "application of "+name)},
	})
}

func (r *torture) addReader(name string, repository *repository, branch string) {
	r.plugin.API.PutVolume(apiserver.Volume(name, driver.Name, name))
	r.readers = append(r.readers, &reader{seat: r.seat(name, repository, branch, corev1.ReadOnlyMany, "pull", "1s", "offline", "allowStale")})
}

// addColleagues makes one for each branch that is written to.
func (r *torture) addColleagues() {
	for _, repository := range r.repositories {
		of := map[string][]string{}
		var branches []string
		for _, w := range r.writers {
			if w.repository == repository {
				if of[w.branch] == nil {
					branches = append(branches, w.branch)
				}
				of[w.branch] = append(of[w.branch], w.volume.Handle)
			}
		}
		for _, branch := range branches {
			r.addColleague(repository, branch, of[branch])
		}
	}
}

func (r *torture) addColleague(repository *repository, branch string, writers []string) {
	dir := filepath.Join(filepath.Dir(repository.bare.Dir), "clone-"+branch)
	config := filepath.Join(filepath.Dir(repository.bare.Dir), "colleague")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		r.t.Fatal(err)
	}
	c := &colleague{
		bare: repository.bare, branch: branch, dir: dir, config: config, writers: writers, findings: &r.findings,
		random: of(r.seed, "colleague of "+repository.name+" "+branch),
	}
	c.open()
	c.begin()
	r.colleagues = append(r.colleagues, c)
}
