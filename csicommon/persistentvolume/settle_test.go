package persistentvolume_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/logtest"
	"liken.sh/csicommon/persistentvolume"
	"liken.sh/csicommon/storedir"
)

// record is that of a store; an empty one is of a new store, "lost" of one that lost it.
type record string

func (r *record) Cluster() (string, error) {
	if *r == "lost" {
		return "", storedir.ErrClusterLost
	}
	return string(*r), nil
}

func (r *record) SetCluster(uid string) error {
	*r = record(uid)
	return nil
}

func TestSettle(t *testing.T) {
	errDown := errors.New("the API server is down")
	for _, row := range []struct {
		name     string
		recorded record
		down     error
		adopt    bool
		want     error
		after    record
	}{
		{"a new store", "", nil, false, nil, "own"},
		{"its own cluster", "own", nil, false, nil, "own"},
		{"another cluster", "other", nil, false, persistentvolume.ErrOtherCluster, "other"},
		{"another cluster that is meant", "other", nil, true, nil, "own"},
		{"one that was used without a cluster", "standalone", nil, false, persistentvolume.ErrOtherCluster, "standalone"},
		{"a lost record", "lost", nil, false, storedir.ErrClusterLost, "lost"},
		{"a lost record, and this cluster is meant", "lost", nil, true, nil, "own"},
		{"no answer", "", errDown, true, errDown, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			kept := row.recorded
			err := persistentvolume.Settlement{
				Cluster: func(context.Context) (string, error) { return "own", row.down },
				Record:  &kept, Adopt: row.adopt, Log: slog.New(slog.DiscardHandler),
			}.Settle(t.Context())
			if !errors.Is(err, row.want) || row.want == nil && err != nil {
				t.Errorf("Settle = %v, want %v", err, row.want)
			}
			if kept != row.after {
				t.Errorf("the record is %q, want %q", kept, row.after)
			}
		})
	}
}

// full is the record of a store on a disk that has no room for it.
type full struct{ record }

func (*full) SetCluster(string) error { return unix.ENOSPC }

// What cannot be recorded is not called settled.
func TestSettleOnAFullDisk(t *testing.T) {
	var lines logtest.Log
	err := persistentvolume.Settlement{
		Cluster: func(context.Context) (string, error) { return "own", nil }, Record: &full{}, Log: lines.Logger(),
	}.Settle(t.Context())
	if !errors.Is(err, unix.ENOSPC) || lines.String() != "" {
		t.Errorf("Settle = %v, and says %q", err, lines.String())
	}
}
