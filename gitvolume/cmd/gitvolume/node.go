package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/nodeplugin"
	"liken.sh/csicommon/storedir"
	"liken.sh/csicommon/usage"
	"liken.sh/gitvolume/internal/access"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/attributesclass"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/driver"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/published"
	"liken.sh/gitvolume/internal/readonly"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/watch"
	"liken.sh/gitvolume/internal/written"
)

// closeEnd is how long fetches may take to end: git has a moment to remove what it has
// begun before it is killed.
const closeEnd = 15 * time.Second

// runNode is the command node.
func runNode(arguments []string) int {
	var o nodeOptions
	return nodeplugin.Command{
		Flags: newNodeFlags(&o), Options: &o.Options, Reword: reworded, Check: o.check,
		About: "gitvolume node serves CSI volumes that are checkouts of git repositories.",
		Start: func(ctx context.Context) (*nodeplugin.Plugin, nodeplugin.Work, error) { return startNode(ctx, o) },
	}.Run(arguments)
}

// node is everything that runs in the process.
type node struct {
	*nodeplugin.Plugin
	options nodeOptions

	store     *store.Store
	meter     *usage.Meter
	children  children
	hosts     *credential.KnownHosts
	key       []byte
	slots     *remote.Slots
	fetches   *remote.Fetches
	reports   *report.Reports
	followers *readonly.Followers
	view      *mount.View // Of the trees; nil: this kernel has none.
	written   *written.Node
	volumes   *published.Volumes
	// volatile is why no new writeable volume is taken; empty: they are.
	volatile string
	// isStuck tells that the fetches did not end in time, and may still use the store.
	isStuck bool
}

// startNode makes and binds all that can be refused at the start.
func startNode(ctx context.Context, o nodeOptions) (*nodeplugin.Plugin, nodeplugin.Work, error) {
	if err := remote.CheckGit(os.Environ()); err != nil {
		return nil, nodeplugin.Work{}, err
	}
	common, err := nodeplugin.Open(ctx, nodeplugin.Config{
		Driver: driver.Name, Options: o.Options, Scratch: filepath.Join(o.Store, store.ScratchDir),
	})
	if err != nil {
		return nil, nodeplugin.Work{}, err
	}
	n := &node{Plugin: common, options: o}
	for _, step := range []func() error{
		n.openStore, n.connect, n.openReports, n.openChildren,
		func() error { n.recover(ctx); return nil },
		n.openFollowers, n.openWritten, n.openVolumes, n.listen,
	} {
		if err := step(); err != nil {
			n.end()
			return nil, nodeplugin.Work{}, errors.Join(err, n.Close(), n.close())
		}
	}
	return common, nodeplugin.Work{
		Begin:  n.volumes.Resume,
		Leave:  n.volumes.Leave,
		Behind: []func(context.Context){n.volumes.Run, n.keepHouse, n.store.EmptyTrash, n.keepMeasured, giveBack},
		End:    n.end,
		Close:  n.close,
	}, nil
}

func (n *node) openStore() (err error) {
	settings := store.Settings{
		Dir: n.options.Store, MinFree: n.options.minFree.free, TrashKeep: n.options.trashKeep, Log: n.Log,
	}
	if n.options.RequireMount {
		settings.Check = storedir.RequireMount(n.Mounts)
	}
	if n.store, err = store.Open(settings); err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	if recorded, err := n.store.Cluster(); err == nil && recorded == watchCluster {
		return fmt.Errorf("--store %q is that of gitvolume watch: give the node one of its own", n.options.Store)
	}
	if n.key, err = n.store.Key(); err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	n.hosts, err = credential.OpenKnownHosts(n.store.SSHDir())
	return err
}

func (n *node) connect() error {
	return n.Connect(nodeplugin.Connection{
		Dropped:     func(occurrences int) { n.reports.EventsDropped(occurrences) },
		Changed:     func(name string) { n.volumes.Changed(name) },
		Annotations: []string{published.DemandAnnotation},
	})
}

func (n *node) openReports() (err error) {
	n.volatile, err = n.store.Volatile()
	switch {
	case err != nil:
		n.Log.Warn("whether a reboot would empty the store is not known", "error", err)
	case n.volatile != "":
		n.Log.Warn("no new writeable volume is taken", "reason", n.volatile)
	}
	n.openMeter()
	space := &storeSpace{ask: n.store.Space, log: n.Log}
	settings := report.Settings{
		Log: n.Log, Meter: n.Meter, StoreBytes: n.storeBytes, StoreSpace: space.current, RefusesWriteable: n.volatile != "",
	}
	if n.View != nil { // Without a cluster the log has all of it already.
		settings.Recorder = n.Events
	}
	n.reports, err = report.New(settings)
	return err
}

func (n *node) openChildren() (err error) {
	if n.children, err = openChildren(n.store); err != nil {
		return err
	}
	n.slots = remote.NewSlots(backgroundRuns)
	n.fetches = remote.NewFetches(remote.FetchesSettings{Fetcher: n.children.command, Slots: n.slots, Timeout: n.options.fetchTimeout})
	return nil
}

// recover comes before anything uses a repository.
func (n *node) recover(ctx context.Context) {
	if err := n.store.Recover(ctx, n.children.command); err != nil && ctx.Err() == nil {
		n.Log.Warn("not all of the store could be repaired", "error", err)
	}
}

func (n *node) openFollowers() (err error) {
	n.followers, err = readonly.New(readonly.Settings{
		Store: n.store, Connect: n.follow, Slots: n.slots, Key: n.key, IsShown: published.MountedAnywhere(n.Mounts),
		DemandEvery: n.options.demandMinInterval, Demanded: n.reports.PullDemanded,
		Jitter: rand.Float64, Log: n.Log,
	})
	return err
}

// watched are the trees as they are watched: through a view in which a pod cannot lead a
// watch out of its tree by a link.
func (n *node) watched() *watch.Trees {
	trees := watch.New()
	dir := n.store.Trees()
	view, err := n.Mounts.NewView(dir)
	if err != nil {
		n.Log.Warn("a pod that swaps directories for links can have the plugin list directories outside of its tree; nothing is read or written there", "error", err)
		return trees
	}
	n.view = view
	trees.Through(dir.Name(), view.Path())
	return trees
}

// openWritten makes what is shared by writeable volumes.
func (n *node) openWritten() error {
	n.written = written.New(written.Settings{
		Store: n.store, Connect: func(r store.Repository, permit remote.Permit, limits string) *access.Access {
			return n.reach(readonly.Asked{Repository: r, Permit: permit, Limits: limits})
		},
		Merges:  func(dir string) history.Merger { return n.children.command.Merger(dir) },
		Watches: n.watched(), Reports: n.reports,
		ScanEvery: n.options.scanEvery, StopPush: n.options.stopPushTimeout,
		Volatile: n.volatile, Began: time.Now(), Log: n.Log,
	})
	return nil
}

// follow makes the way to a repository elsewhere for those who read it.
func (n *node) follow(asked readonly.Asked) readonly.Remote {
	reached := n.reach(asked)
	reached.Take(asked.Credential)
	return readonly.Over(reached)
}

// reach makes the way to a repository elsewhere, as nobody yet.
func (n *node) reach(asked readonly.Asked) *access.Access {
	repo := asked.Repository.URL.Repo()
	return access.New(access.Settings{
		Command: n.children.command, Fetches: n.fetches,
		URL: asked.Repository.URL, Dir: asked.Repository.Dir(), Depth: asked.Repository.Depth,
		Permit: asked.Permit, Limits: asked.Limits, Slots: n.slots, Serving: n.children.serving(n.hosts, ""), Key: n.key,
		Hold:       asked.Hold,
		Observe:    func(took time.Duration, err error) { n.reports.Fetched(repo, took, err) },
		LookFailed: func() { n.reports.LookFailed(repo) },
	})
}

func (n *node) openVolumes() error {
	settings := published.Settings{
		Driver: driver.Name, Store: n.store, Followers: n.followers, Written: n.written, Mounts: n.Mounts, KubeletDir: n.KubeletDir,
		Rules: n.options.rules, Allowed: n.options.allowed, Addresses: n.options.addresses,
		Reports: n.reports, Log: n.Log,
	}
	if n.View != nil {
		settings.Cluster, settings.Classes = n.View, attributesclass.New(n.Client)
	}
	n.volumes = published.New(settings)
	return nil
}

func (n *node) listen() error {
	service := driver.New(driver.Config{NodeID: n.options.NodeID, Volumes: n.volumes})
	return n.Listen(nodeplugin.Service{
		Store: n.store, Codes: driver.Codes(), Hide: attributes.WithoutSecrets,
		Register: func(r grpc.ServiceRegistrar) { csi.RegisterNodeServer(r, service) },
	})
}

// end commits and pushes what pods wrote, and has no volume be followed any more. Mounts
// stay as they are.
func (n *node) end() {
	if n.volumes != nil {
		n.volumes.End(context.Background())
	}
	var closing sync.WaitGroup
	closing.Go(func() {
		if n.followers != nil {
			n.followers.Close()
		}
		if n.fetches != nil {
			n.fetches.Close()
		}
	})
	if n.isStuck = !nodeplugin.EndsWithin(&closing, closeEnd); n.isStuck {
		n.children.keepRuntime()
		n.Log.Warn("ending although fetches do not end")
	}
}

// close gives up what others may use then: the store last, for the view is below it.
func (n *node) close() error {
	var err error
	if n.view != nil {
		err = n.view.Close()
	}
	if n.store == nil || n.isStuck {
		return err
	}
	return errors.Join(err, n.children.close(), n.store.Close())
}
