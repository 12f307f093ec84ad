// Package driver is the CSI Node service of the per-node driver: it reads
// requests, has the work done by the copies' store and says what happened in
// CSI's codes and in Events.
//
// It is the only package of this driver that knows gRPC. It must never touch the
// disk or a mount itself, and a call must never wait for the API server.
package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/event"
	"liken.sh/csicommon/server"
	"liken.sh/csicommon/usage"
	"liken.sh/pernode/internal/copies"
	"liken.sh/pernode/internal/inspect"
)

// Name is the driver's CSI name.
const Name = "per-node.liken.sh"

// Store does the work; *copies.Store is it.
type Store interface {
	Publish(ctx context.Context, p copies.Publication) error
	Unpublish(ctx context.Context, volume, target string) error
	SpaceAt(ctx context.Context, volume, target string) (usage.Space, error)
}

// Sweeper hears which volumes are in use; *sweep.Sweeper is it.
type Sweeper interface {
	Wanted(volume, pv string)
	Published(volume string)
	Released(volume string)
}

// Inspector answers for the copies from memory; *inspect.Inspector is it.
type Inspector interface {
	Touch(volume string)
	Usage(ctx context.Context, volume string) (usage.Usage, error)
	Verdict(volume string) []inspect.Condition
}

// Config is what the service needs.
type Config struct {
	NodeID    string
	Store     Store
	Sweeper   Sweeper
	Inspector Inspector
	Events    event.Recorder
	// Refused counts a refused publish by the reason of its Event.
	Refused func(ctx context.Context, reason string)
}

// Driver is the CSI Node service.
type Driver struct {
	csi.UnimplementedNodeServer
	config Config
}

// New makes the service.
func New(config Config) *Driver { return &Driver{config: config} }

// Codes is the table of this driver's errors. A copy that is held, or that
// something else stands in the place of, is FailedPrecondition: trying again
// helps only once somebody has changed that.
func Codes() []server.Code {
	return append([]server.Code{
		{Err: copies.ErrPublishedOtherwise, Code: codes.AlreadyExists},
		{Err: copies.ErrHeld, Code: codes.FailedPrecondition},
		{Err: copies.ErrUndecided, Code: codes.FailedPrecondition},
		{Err: copies.ErrNotADirectory, Code: codes.FailedPrecondition},
		{Err: copies.ErrStore, Code: codes.FailedPrecondition},
		{Err: copies.ErrNotPublished, Code: codes.NotFound},
		{Err: copies.ErrNoCopy, Code: codes.NotFound},
	}, server.NodeCodes()...)
}

// NodeGetInfo names the node. There is no limit of volumes and no topology: a
// volume is on every node.
func (d *Driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.config.NodeID}, nil
}

// NodeGetCapabilities lists what a node serves beyond publishing. There is no
// staging: a node has nothing to do once for all pods.
func (d *Driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return server.NodeCapabilities(
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
		csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH,
	), nil
}
