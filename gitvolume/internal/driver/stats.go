package driver

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"liken.sh/csicommon/server"
	"liken.sh/gitvolume/internal/report"
)

// firstMeasurement bounds how long a call waits for a tree that was never measured, or for
// a disk that does not answer. The kubelet asks again a minute later.
const firstMeasurement = 5 * time.Second

// NodeGetVolumeStats reports what the volume's tree uses and what its file system has.
func (d *Driver) NodeGetVolumeStats(ctx context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := server.Identified(request.GetVolumeId(), request.GetVolumePath(), "volume path"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, firstMeasurement)
	defer cancel()
	space, err := d.config.Volumes.Space(ctx, request.GetVolumeId(), request.GetVolumePath())
	if err != nil {
		return nil, err
	}
	return server.VolumeStats(space.Used, space.Space), nil
}

// NodeGetVolumeHealth reports what is wrong with the volume. The kubelet asks for one
// volume after another, for pods whose mount was refused too, so nothing here waits: an
// unknown volume is one with nothing wrong known.
func (d *Driver) NodeGetVolumeHealth(_ context.Context, request *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	if request.GetVolumeId() == "" {
		return nil, server.Argument("the volume id is missing")
	}
	health := &csi.VolumeHealth{VolumeId: request.GetVolumeId()}
	for _, reason := range d.config.Volumes.Abnormal(request.GetVolumeId()) {
		health.HealthStatuses = append(health.HealthStatuses, &csi.VolumeHealth_VolumeHealthEntry{
			Status: severity(reason.Severity), Reason: reason.Reason, Message: reason.Message,
		})
	}
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: health}, nil
}

func severity(s report.Severity) csi.VolumeHealthErrorType {
	if s == report.Inaccessible {
		return csi.VolumeHealthErrorType_INACCESSIBLE
	}
	return csi.VolumeHealthErrorType_DEGRADED
}
