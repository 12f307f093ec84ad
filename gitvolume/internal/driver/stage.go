package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/podinfo"
	"liken.sh/csicommon/server"
	"liken.sh/gitvolume/internal/published"
)

// NodeStageVolume checks what the volume says before a pod waits for it, and takes the
// Secret of nodeStageSecretRef. What a writeable volume starts from is fetched. The kubelet
// repeats it when it was restarted.
func (d *Driver) NodeStageVolume(ctx context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if err := handle.Check(request.GetVolumeId()); err != nil {
		return nil, err
	}
	if request.GetStagingTargetPath() == "" {
		return nil, server.Argument("the staging target path is missing")
	}
	kind, err := readKind(request.GetVolumeCapability(), podinfo.IsInline(request.GetVolumeContext()))
	if err != nil {
		return nil, err
	}
	err = d.config.Volumes.Stage(ctx, published.Staging{
		Handle: request.GetVolumeId(), Kind: kind, Attributes: request.GetVolumeContext(), Secret: request.GetSecrets(),
	})
	if err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume forgets what the stage brought, and tries once more to push what was
// written. Nothing is ever mounted at the staging path.
func (d *Driver) NodeUnstageVolume(ctx context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := server.Identified(request.GetVolumeId(), request.GetStagingTargetPath(), "staging target path"); err != nil {
		return nil, err
	}
	if err := d.config.Volumes.Unstage(ctx, request.GetVolumeId()); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}
