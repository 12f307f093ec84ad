package driver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"liken.sh/csicommon/server"
	"liken.sh/pernode/internal/inspect"
)

// NodeGetVolumeHealth reports what the last look at the copy found. The kubelet
// asks for one volume after another, for pods whose mount was refused too, so
// nothing here waits: an unknown volume is one with nothing wrong known.
func (d *Driver) NodeGetVolumeHealth(_ context.Context, request *csi.NodeGetVolumeHealthRequest) (*csi.NodeGetVolumeHealthResponse, error) {
	if request.GetVolumeId() == "" {
		return nil, server.Argument("the volume id is missing")
	}
	health := &csi.VolumeHealth{VolumeId: request.GetVolumeId()}
	for _, condition := range d.config.Inspector.Verdict(request.GetVolumeId()) {
		health.HealthStatuses = append(health.HealthStatuses, &csi.VolumeHealth_VolumeHealthEntry{
			Status:  severity(condition.Severity),
			Reason:  condition.Reason,
			Message: condition.Message,
		})
	}
	return &csi.NodeGetVolumeHealthResponse{VolumeHealth: health}, nil
}

func severity(s inspect.Severity) csi.VolumeHealthErrorType {
	if s == inspect.Inaccessible {
		return csi.VolumeHealthErrorType_INACCESSIBLE
	}
	return csi.VolumeHealthErrorType_DEGRADED
}
