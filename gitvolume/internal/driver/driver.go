// Package driver is the CSI Node service of the git driver: it reads requests, has the
// work done by the published volumes and says what happened in CSI's codes.
//
// It is the only package of the node that knows gRPC. It must never touch the disk, a
// mount, git or the API server itself, and must answer a publish that is only repeated
// without asking anybody but the memory.
package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/server"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/nodevolume"
	"liken.sh/gitvolume/internal/published"
	"liken.sh/gitvolume/internal/readonly"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
)

// Name is the driver's CSI name.
const Name = "git.liken.sh"

// Volumes do the work; *published.Volumes is it.
type Volumes interface {
	Republish(handle, at string, isReadOnly bool, secret map[string]string) (isRepeated bool)
	Publish(ctx context.Context, p published.Publication) error
	Refuse(p published.Publication, err error)
	Unpublish(ctx context.Context, volume, at string) error
	Stage(ctx context.Context, s published.Staging) error
	Unstage(ctx context.Context, handle string) error
	Space(ctx context.Context, handle, at string) (published.Space, error)
	Abnormal(handle string) []report.Reason
}

// Config is what the service needs.
type Config struct {
	NodeID  string
	Volumes Volumes
}

// Driver is the CSI Node service.
type Driver struct {
	csi.UnimplementedNodeServer
	config Config
}

// New makes the service.
func New(config Config) *Driver { return &Driver{config: config} }

// Codes is the table of this driver's errors. What is on its way is Aborted, so that the
// kubelet comes again soon. What the remote says comes before what git's failure is in
// general.
func Codes() []server.Code {
	return append([]server.Code{
		{Err: remote.ErrInProgress, Code: codes.Aborted},
		{Err: published.ErrTooEarly, Code: codes.Aborted},
		{Err: attributes.ErrInvalid, Code: codes.InvalidArgument},
		{Err: credential.ErrMalformed, Code: codes.InvalidArgument},
		{Err: credential.ErrUnfit, Code: codes.InvalidArgument},
		{Err: published.ErrSecrets, Code: codes.FailedPrecondition},
		{Err: published.ErrHeld, Code: codes.FailedPrecondition},
		{Err: published.ErrOtherKind, Code: codes.FailedPrecondition},
		{Err: published.ErrOtherMount, Code: codes.AlreadyExists},
		{Err: published.ErrNoVolume, Code: codes.NotFound},
		{Err: published.ErrNotPublished, Code: codes.NotFound},
		{Err: nodevolume.ErrRefused, Code: codes.FailedPrecondition},
		{Err: nodevolume.ErrVolatile, Code: codes.FailedPrecondition},
		{Err: nodevolume.ErrUnfollowed, Code: codes.Unavailable},
		{Err: readonly.ErrOther, Code: codes.FailedPrecondition},
		{Err: store.ErrFull, Code: codes.ResourceExhausted},
		{Err: store.ErrStore, Code: codes.FailedPrecondition},
		{Err: remote.ErrRefusedAddress, Code: codes.PermissionDenied},
		{Err: remote.ErrAuthentication, Code: codes.Unauthenticated},
		{Err: remote.ErrIdentity, Code: codes.FailedPrecondition},
		{Err: remote.ErrNoRepository, Code: codes.NotFound},
		{Err: remote.ErrNoRef, Code: codes.NotFound},
		{Err: remote.ErrUnreachable, Code: codes.Unavailable},
		{Err: remote.ErrStalled, Code: codes.Unavailable},
		{Err: remote.ErrTimeout, Code: codes.Unavailable},
	}, server.NodeCodes()...)
}

// NodeGetInfo names the node. There is no limit of volumes and no topology: a repository
// is reached from every node.
func (d *Driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.config.NodeID}, nil
}

// NodeGetCapabilities lists what a node serves beyond publishing.
func (d *Driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return server.NodeCapabilities(
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
		csi.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP,
		csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH,
	), nil
}
