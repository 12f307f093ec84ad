package conformance

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

// adapt has the suite ask for volumes of the kind that the plugin serves. Answers, and all
// else of the requests, stay as they are.
func (c Config) adapt(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	switch request := request.(type) {
	case *csi.NodeStageVolumeRequest:
		c.adaptMode(request.GetVolumeCapability())
	case *csi.NodePublishVolumeRequest:
		c.adaptMode(request.GetVolumeCapability())
		request.Readonly = request.Readonly || c.ReadOnly
	}
	return invoke(ctx, method, request, reply, conn, options...)
}

func (c Config) adaptMode(capability *csi.VolumeCapability) {
	mode := capability.GetAccessMode()
	if c.AccessMode != csi.VolumeCapability_AccessMode_UNKNOWN && mode.GetMode() == csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER {
		mode.Mode = c.AccessMode
	}
}
