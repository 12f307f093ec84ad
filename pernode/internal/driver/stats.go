package driver

import (
	"context"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// firstMeasurement bounds how long a call waits for a copy that was never
// measured. The kubelet asks again a minute later.
const firstMeasurement = 5 * time.Second

// NodeGetVolumeStats reports what the copy uses and what its file system has.
// Used is the copy's alone, so total is not used plus available.
func (d *Driver) NodeGetVolumeStats(ctx context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	volume, path := request.GetVolumeId(), request.GetVolumePath()
	switch {
	case volume == "":
		return nil, argument("the volume id is missing")
	case path == "":
		return nil, argument("the volume path is missing")
	}
	space, err := d.config.Store.SpaceAt(volume, path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, firstMeasurement)
	defer cancel()
	used, err := d.config.Inspector.Usage(ctx, volume)
	if err != nil {
		return nil, fmt.Errorf("measure volume %q: %w", volume, err)
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Used: used.Bytes, Total: space.Bytes, Available: space.AvailableBytes},
		{Unit: csi.VolumeUsage_INODES, Used: used.Inodes, Total: space.Inodes, Available: space.AvailableInodes},
	}}, nil
}
