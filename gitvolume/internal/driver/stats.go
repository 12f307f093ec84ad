package driver

import (
	"context"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"liken.sh/gitvolume/internal/report"
)

// firstMeasurement bounds how long a call waits for a tree that was never measured. The
// kubelet asks again a minute later.
const firstMeasurement = 5 * time.Second

// NodeGetVolumeStats reports what the volume's tree uses and what its file system has.
// Used is the tree's alone, so total is not used plus available.
func (d *Driver) NodeGetVolumeStats(ctx context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	switch {
	case request.GetVolumeId() == "":
		return nil, argument("the volume id is missing")
	case request.GetVolumePath() == "":
		return nil, argument("the volume path is missing")
	}
	ctx, cancel := context.WithTimeout(ctx, firstMeasurement)
	defer cancel()
	space, err := d.config.Volumes.Space(ctx, request.GetVolumeId(), request.GetVolumePath())
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Used: space.Used.Bytes, Total: space.Bytes, Available: space.AvailableBytes},
		{Unit: csi.VolumeUsage_INODES, Used: space.Used.Inodes, Total: space.Inodes, Available: space.AvailableInodes},
	}}, nil
}

// NodeGetVolumeHealth reports what is wrong with the volume. The kubelet asks for one
// volume after another, for pods whose mount was refused too, so nothing here waits: an
// unknown volume is one with nothing wrong known.
func (d *Driver) NodeGetVolumeHealth(_ context.Context, request *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	if request.GetVolumeId() == "" {
		return nil, argument("the volume id is missing")
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
