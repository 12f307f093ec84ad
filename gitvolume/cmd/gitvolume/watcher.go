package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"liken.sh/csicommon/logging"
	"liken.sh/csicommon/storedir"
	"liken.sh/gitvolume/internal/access"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/driver"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/nodevolume"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/watch"
	"liken.sh/gitvolume/internal/writeable"
)

const (
	// fetchTimeout bounds one fetch as a whole.
	fetchTimeout = time.Hour
	// trashKeep is how long what the store removes can be brought back.
	trashKeep = 24 * time.Hour
	// watchCluster is recorded as the cluster of a watch's store, so that no node takes it.
	watchCluster = "watch"
)

// watcher is everything that runs in the process.
type watcher struct {
	options options
	log     *slog.Logger
	printer *report.Printer
	place   place
	asked   attributes.Volume
	secret  *credential.Credential
	arming  writeable.Arming
	pending pendingPrinter

	store    *store.Store
	record   store.Record
	children children
	fetches  *remote.Fetches
	reports  *report.Reports
	report   *report.Volume
	volume   *nodevolume.Volume
}

// newWatcher makes all that can be refused before the remote is asked, and changes nothing
// in the directory.
func newWatcher(o options) (*watcher, error) {
	w := &watcher{options: o, printer: report.NewPrinter(os.Stdout)}
	w.pending.say = w.printer.Print
	for _, step := range []func() error{
		w.findGit, w.openLog, w.findPlace, w.readAddress, w.readSecret, w.readArming, w.openStore, w.findRecord, w.openReports, w.openVolume,
	} {
		if err := step(); err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	return w, nil
}

// close gives up what others may use then.
func (w *watcher) close() error {
	if w.fetches != nil {
		w.fetches.Close()
	}
	if w.store == nil {
		return nil
	}
	return errors.Join(w.children.close(), w.store.Close())
}

func (w *watcher) findGit() error { return remote.CheckGit(os.Environ()) }

func (w *watcher) openLog() (err error) {
	if w.log, err = logging.New(os.Stderr, w.options.logLevel, "text"); err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	return nil
}

func (w *watcher) findPlace() (err error) {
	if w.place, err = findPlace(w.options.dir); err != nil {
		return err
	}
	if w.options.store == "" {
		if w.options.store, err = w.place.defaultStore(); err != nil {
			return err
		}
	}
	if w.options.store, err = resolve(w.options.store); err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	return w.place.check(w.options.store)
}

func (w *watcher) readAddress() (err error) {
	rules := attributes.Rules{Local: w.options.allowLocalURLs}
	w.asked, err = rules.Parse(attributes.KindWriteable, map[string]string{"url": w.options.url, "ref": w.options.ref}, w.place.handle())
	if err == nil {
		return nil
	}
	for _, flag := range []string{"url", "ref"} {
		if rest, found := strings.CutPrefix(err.Error(), "attribute "+flag+":"); found {
			return errors.New("--" + flag + ":" + w.options.inFiles(rest))
		}
	}
	return err
}

func (w *watcher) readSecret() (err error) {
	w.secret, err = w.options.readCredential(w.asked.URL)
	return err
}

func (w *watcher) readArming() (err error) {
	w.arming = unarmed()
	if w.options.class != "" {
		w.arming, err = readClass(w.options.class)
	}
	return err
}

func (w *watcher) openStore() (err error) {
	w.store, err = store.Open(store.Settings{Dir: w.options.store, TrashKeep: trashKeep, Log: w.log})
	switch {
	case errors.Is(err, storedir.ErrInUse):
		return fmt.Errorf("another gitvolume watches %q, or another directory with the store %q: stop that one first", w.place.dir, w.options.store)
	case err != nil:
		return fmt.Errorf("--store: %w", err)
	}
	switch cluster, err := w.store.Cluster(); {
	case err != nil, cluster == watchCluster:
		return nil //nolint:nilerr // A watch removes nothing for a cluster's sake, and asks none.
	case cluster != "":
		return fmt.Errorf("--store %q is that of a node of a Kubernetes cluster: give it one of its own", w.options.store)
	}
	if err := w.store.SetCluster(watchCluster); err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	return nil
}

// findRecord finds what the store knows of the directory. One that it does not know has to
// be empty: what is in it might be anything, and the remote's files go there.
func (w *watcher) findRecord() error {
	records, problems, err := w.store.All()
	if err != nil {
		return err
	}
	w.record = store.Record{
		Handle: w.place.handle(), Kind: store.Writeable, URL: w.asked.URL, Ref: w.asked.Ref.String(),
		Targets: []store.Target{{Path: w.place.dir}},
	}
	for _, kept := range records {
		if slices.ContainsFunc(kept.Targets, func(t store.Target) bool { return t.Path == w.place.dir }) && kept.Position != (store.Position{}) {
			w.record.Handle = kept.Handle // The machine's id may be another by now.
			return w.checkKept(kept)
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("--store: %w", problems[0].Err)
	}
	return w.checkNew()
}

func (w *watcher) checkKept(kept store.Record) error {
	if kept.URL == w.record.URL && kept.Ref == w.record.Ref {
		return nil
	}
	return fmt.Errorf("%q has its history on %s of %s, and is never made one of %s of %s: watch another directory for that",
		w.place.dir, kept.Ref, kept.URL, w.record.Ref, w.record.URL)
}

func (w *watcher) checkNew() error {
	switch {
	case w.place.hasGit():
		return fmt.Errorf("%q is a checkout of git's own (it has a .git): watch an empty directory, or one that is not there yet", w.place.dir)
	case !w.place.isEmpty:
		return fmt.Errorf("%q is not empty, and the store %q knows nothing of it: watch an empty directory and move the files there afterwards; "+
			"or give the --store that it was watched with", w.place.dir, w.options.store)
	case !w.place.isThere:
		if err := os.MkdirAll(filepath.Dir(w.place.dir), 0o777); err != nil {
			return fmt.Errorf("make the directory: %w", err)
		}
	}
	return nil
}

func (w *watcher) openReports() (err error) {
	log := w.log
	if !log.Enabled(context.Background(), slog.LevelInfo) {
		// A person who sees the lines need not read them twice.
		log = slog.New(slog.DiscardHandler)
	}
	w.reports, err = report.New(report.Settings{
		Recorder: w.printer, Unposted: w.printer.Wrong, Log: log, Meter: noop.NewMeterProvider().Meter(driver.Name),
	})
	return err
}

func (w *watcher) openVolume() (err error) {
	if w.children, err = openChildren(w.store); err != nil {
		return err
	}
	command := w.children.command
	slots := remote.NewSlots(backgroundRuns)
	w.fetches = remote.NewFetches(remote.FetchesSettings{Fetcher: command, Slots: slots, Timeout: fetchTimeout})
	hosts, err := credential.OpenKnownHosts(w.store.SSHDir())
	if err != nil {
		return err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // It never fails.
	repo := w.asked.URL.Repo()
	reached := access.New(access.Settings{
		Command: command, Fetches: w.fetches, URL: w.asked.URL, Dir: w.store.Repository(w.asked.URL, 0).Dir(),
		Slots: slots, Serving: w.children.serving(hosts, w.options.given()), Key: key,
		Observe:    func(took time.Duration, err error) { w.reports.Fetched(repo, took, err) },
		LookFailed: func() { w.reports.LookFailed(repo) },
	})
	reached.Take(w.secret)
	handle := w.record.Handle
	w.report = w.reports.Volume(report.Subject{Kind: attributes.KindWriteable, Handle: handle, Volume: w.place.dir})
	w.volume, err = nodevolume.New(nodevolume.Settings{
		Store: w.store, Merges: func(dir string) history.Merger { return command.Merger(dir) },
		Access: reached, Watches: watch.New(),
		Report: w.report, Reports: w.reports, Log: w.log.With("volume", handle),
		Record: w.record, Owner: "watch/" + handle, Branch: w.asked.Ref.Branch(),
		Dir: w.place.dir, Root: w.place.root, ForeignRoot: true, Fresh: metadata.Plain(),
		Arming: w.arming, Pending: w.pending.tell, ScanEvery: w.options.scanEvery,
	})
	return err
}
