package readonly

import (
	"errors"
	"fmt"
	"os"

	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/report"
)

// Resume follows volumes that were attached when the driver ended, and that pods may have
// had all the time; it comes before any Attach. No remote is asked first, and no tree is touched. What needs a
// credential waits for it and says so. The volumes' Records are as they were loaded. What
// cannot be resumed is in the error, by ErrNoCheckout if it was never shown.
func (f *Followers) Resume(volumes []Volume) (map[string]*Attachment, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	resumed := map[string]*Attachment{}
	var errs []error
	for _, v := range volumes {
		a, err := f.resume(v)
		if err != nil {
			errs = append(errs, fmt.Errorf("resume volume %q: %w", v.handle(), err))
			continue
		}
		resumed[v.handle()] = a
	}
	// Only now, or the first of a repository would be asked for without the others.
	for _, a := range resumed {
		a.follower = f.follower(a.checkout.repository)
		a.follower.join(a)
		if a.credential != nil {
			a.follower.view(a.scope, f.connect, a.volume)
		}
	}
	return resumed, errors.Join(errs...)
}

// resume gives the volume the tree that it showed. The caller holds mu.
func (f *Followers) resume(v Volume) (*Attachment, error) {
	if v.Record.Reading == nil {
		return nil, ErrNoCheckout
	}
	if f.attached[v.handle()] != nil {
		return nil, fmt.Errorf("%w or was resumed already", ErrOther)
	}
	read, err := attributesOf(v.Record)
	if err != nil {
		return nil, err
	}
	key := v.Record.Reading.Checkout
	if info, err := os.Lstat(f.dir(key)); err != nil || !info.IsDir() {
		return nil, errors.Join(ErrNoCheckout, err)
	}
	v.Attributes = read
	a := &Attachment{
		followers: f, volume: v, attributes: read, record: v.Record,
		scope: scope(v.Record.Reading.Scope), proven: scope(v.Record.Reading.Scope),
		demanded: read.Pull.OnDemand, // A restart may have missed a demand.
	}
	a.failing = !a.isFixed()
	switch {
	case f.scopeOf(v, credential.Anonymous()) == a.scope:
		a.credential = credential.Anonymous()
		a.volume.Credential = a.credential
	case a.failing:
		v.Report.Raise(report.CredentialMissing, "the driver was restarted, and the credential comes with the next publish")
	}
	a.checkout = f.share(key, f.repositoryOf(v), a)
	if a.checkout.commit, err = f.tree(key, nil).Commit(); err != nil || a.checkout.commit.IsZero() {
		a.checkout.finish = true
	}
	f.attached[v.handle()] = a
	return a, nil
}
