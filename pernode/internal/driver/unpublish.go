package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/server"
)

// NodeUnpublishVolume takes the volume off the target. A handle that is unknown
// or could never be one is no error (the kubelet must be able to get rid of a
// pod whatever its volume was), an empty one is.
func (d *Driver) NodeUnpublishVolume(ctx context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := server.Identified(request.GetVolumeId(), request.GetTargetPath(), "target path"); err != nil {
		return nil, err
	}
	if err := d.config.Store.Unpublish(ctx, request.GetVolumeId(), request.GetTargetPath()); err != nil {
		return nil, err
	}
	if handle.Check(request.GetVolumeId()) == nil {
		d.config.Inspector.Touch(request.GetVolumeId())
		d.config.Sweeper.Released(request.GetVolumeId())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
