package driver

import (
	"context"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"liken.sh/csicommon/server"
)

// firstMeasurement bounds how long a call waits for a copy that was never
// measured, or for a disk that does not answer. The kubelet asks again a minute later.
const firstMeasurement = 5 * time.Second

// NodeGetVolumeStats reports what the copy uses and what its file system has.
func (d *Driver) NodeGetVolumeStats(ctx context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	volume, path := request.GetVolumeId(), request.GetVolumePath()
	if err := server.Identified(volume, path, "volume path"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, firstMeasurement)
	defer cancel()
	space, err := d.config.Store.SpaceAt(ctx, volume, path)
	if err != nil {
		return nil, err
	}
	used, err := d.config.Inspector.Usage(ctx, volume)
	if err != nil {
		return nil, fmt.Errorf("measure volume %q: %w", volume, err)
	}
	return server.VolumeStats(used, space), nil
}
