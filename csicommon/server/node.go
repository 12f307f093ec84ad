package server

import (
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/target"
	"liken.sh/csicommon/usage"
)

// Argument is an error about a request that no retry can make good; it says what is wrong.
func Argument(wrong string) error { return fmt.Errorf("%w: %s", ErrArgument, wrong) }

// Identified refuses a request without a volume id, or without the path that CSI requires
// beside it. The name is the path's, as CSI calls it. A volume id that could be no handle is
// none of its business: whoever is to get rid of a volume must be able to, whatever it is.
func Identified(volumeID, path, name string) error {
	switch {
	case volumeID == "":
		return Argument("the volume id is missing")
	case path == "":
		return Argument("the " + name + " is missing")
	}
	return nil
}

// Filesystem refuses a capability that is not of a volume to mount. A file system's type is
// ignored: there is none of the volume's own.
func Filesystem(capability *csi.VolumeCapability) error {
	switch {
	case capability == nil:
		return Argument("the volume capability is missing")
	case capability.GetBlock() != nil:
		return Argument("block volumes are not served, use volumeMode: Filesystem")
	case capability.GetMount() == nil:
		return Argument("the volume capability names no access type")
	}
	return nil
}

// NodeCodes are the errors that mean the same in every node plugin: what stands in the way
// at a target is FailedPrecondition, since trying again helps only once somebody has changed
// that.
func NodeCodes() []Code {
	return []Code{
		{Err: target.ErrTarget, Code: codes.InvalidArgument},
		{Err: mount.ErrPath, Code: codes.InvalidArgument},
		{Err: target.ErrOccupied, Code: codes.FailedPrecondition},
		{Err: mount.ErrNotShared, Code: codes.FailedPrecondition},
		{Err: mount.ErrNotDirectory, Code: codes.FailedPrecondition},
		{Err: mount.ErrMounted, Code: codes.FailedPrecondition},
		{Err: mount.ErrNotEmpty, Code: codes.FailedPrecondition},
		{Err: mount.ErrBusy, Code: codes.FailedPrecondition},
		{Err: usage.ErrNotMeasured, Code: codes.Unavailable},
	}
}

// NodeCapabilities is the answer of a node that serves these RPCs beyond publishing.
func NodeCapabilities(served ...csi.NodeServiceCapability_RPC_Type) *csi.NodeGetCapabilitiesResponse {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, rpc := range served {
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: rpc}},
		})
	}
	return response
}

// VolumeStats is the answer about a volume that has no file system of its own: used is what
// its tree uses, the rest its file system's, so total is not used plus available.
func VolumeStats(used usage.Usage, space usage.Space) *csi.NodeGetVolumeStatsResponse {
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Used: used.Bytes, Total: space.Bytes, Available: space.AvailableBytes},
		{Unit: csi.VolumeUsage_INODES, Used: used.Inodes, Total: space.Inodes, Available: space.AvailableInodes},
	}}
}
