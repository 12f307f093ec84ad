package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/podinfo"
	"liken.sh/gitvolume/internal/published"
)

// NodeStageVolume checks what the volume says before a pod waits for it, and takes the
// Secret of nodeStageSecretRef. The kubelet repeats it when it was restarted.
func (d *Driver) NodeStageVolume(_ context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if err := handle.Check(request.GetVolumeId()); err != nil {
		return nil, err
	}
	if request.GetStagingTargetPath() == "" {
		return nil, argument("the staging target path is missing")
	}
	kind, err := readKind(request.GetVolumeCapability(), podinfo.IsInline(request.GetVolumeContext()))
	if err != nil {
		return nil, err
	}
	err = d.config.Volumes.Stage(published.Staging{
		Handle: request.GetVolumeId(), Kind: kind, Attributes: request.GetVolumeContext(), Secret: request.GetSecrets(),
	})
	if err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// NodeUnstageVolume forgets what the stage brought. Nothing is ever mounted at the staging
// path.
func (d *Driver) NodeUnstageVolume(_ context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	switch {
	case request.GetVolumeId() == "":
		return nil, argument("the volume id is missing")
	case request.GetStagingTargetPath() == "":
		return nil, argument("the staging target path is missing")
	}
	d.config.Volumes.Unstage(request.GetVolumeId())
	return &csi.NodeUnstageVolumeResponse{}, nil
}
