package controller

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/server"
	"liken.sh/gitvolume/internal/policy"
)

// Controller is the CSI Controller service.
type Controller struct {
	csi.UnimplementedControllerServer

	// driver is the CSI name, by which refusals call the driver.
	driver string
}

// Register adds the services of a controller of the driver of that CSI name.
func Register(r grpc.ServiceRegistrar, driver string) {
	csi.RegisterControllerServer(r, &Controller{driver: driver})
	csi.RegisterNodeServer(r, node{})
}

// Codes is the table of this service's errors.
func Codes() []server.Code {
	return []server.Code{{Err: policy.ErrInvalid, Code: codes.InvalidArgument}}
}

// PluginCapabilities are those of Identity.GetPluginCapabilities. Without
// CONTROLLER_SERVICE the resizer and the provisioner end at once.
func PluginCapabilities() []*csi.PluginCapability {
	return []*csi.PluginCapability{{
		Type: &csi.PluginCapability_Service_{
			Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE},
		},
	}}
}

// ControllerGetCapabilities lists what the sidecars may ask for.
func (c *Controller) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, rpc := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_MODIFY_VOLUME,
	} {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: rpc}},
		})
	}
	return response, nil
}

// ControllerModifyVolume accepts the parameters of a class by which a node can go, and
// changes nothing: the node reads the class that the resizer then writes into the
// PersistentVolume. The error of one that is refused names the first bad parameter.
func (c *Controller) ControllerModifyVolume(_ context.Context, request *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	if err := handle.Check(request.GetVolumeId()); err != nil {
		return nil, err
	}
	if _, err := policy.Parse(request.GetMutableParameters()); err != nil {
		return nil, err
	}
	return &csi.ControllerModifyVolumeResponse{}, nil
}

// DeleteVolume succeeds, whatever the volume: each node that has a tree of it removes that
// once the PersistentVolume is gone, which this is the condition for. A handle that breaks
// the rules is of no node's tree.
func (c *Controller) DeleteVolume(_ context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if request.GetVolumeId() == "" {
		return nil, argument("the volume id is missing")
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ValidateVolumeCapabilities confirms the capabilities that a volume of this driver can
// have, whether or not there is one of that handle: volumes are PersistentVolumes that
// people write. CSI requires it of a controller; Kubernetes does not call it.
func (c *Controller) ValidateVolumeCapabilities(_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if err := handle.Check(request.GetVolumeId()); err != nil {
		return nil, err
	}
	if len(request.GetVolumeCapabilities()) == 0 {
		return nil, argument("the volume capabilities are missing")
	}
	for _, capability := range request.GetVolumeCapabilities() {
		if capability.GetMount() == nil || !isServed(capability.GetAccessMode().GetMode()) {
			return &csi.ValidateVolumeCapabilitiesResponse{
				Message: "served are volumes with a file system that are ReadWriteOncePod or ReadOnlyMany",
			}, nil
		}
	}
	return &csi.ValidateVolumeCapabilitiesResponse{
		Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
			VolumeContext:      request.GetVolumeContext(),
			VolumeCapabilities: request.GetVolumeCapabilities(),
			Parameters:         request.GetParameters(),
			MutableParameters:  request.GetMutableParameters(),
		},
	}, nil
}

// isServed tells the modes of ReadWriteOncePod and ReadOnlyMany.
func isServed(mode csi.VolumeCapability_AccessMode_Mode) bool {
	return mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER ||
		mode == csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
}

func argument(text string) error { return fmt.Errorf("%w: %s", server.ErrArgument, text) }

// node answers what the resizer asks of the node plugin, and ends without: whether a node
// grows volumes. A controller has nothing of a node.
type node struct{ csi.UnimplementedNodeServer }

// NodeGetCapabilities lists none.
func (node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}
