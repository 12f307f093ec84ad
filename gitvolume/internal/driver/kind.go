package driver

import (
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"liken.sh/csicommon/server"
	"liken.sh/gitvolume/internal/attributes"
)

// readKind tells which volume a request is about. The access mode of an inline volume is
// the kubelet's invention and not looked at. After an error the kind is a guess, for who
// tells of it.
func readKind(capability *csi.VolumeCapability, isInline bool) (attributes.Kind, error) {
	kind := attributes.KindReadOnlyClaim
	if isInline {
		kind = attributes.KindInline
	}
	switch {
	case capability == nil:
		return kind, argument("the volume capability is missing")
	case capability.GetBlock() != nil:
		return kind, argument("block volumes are not served, use volumeMode: Filesystem")
	case capability.GetMount() == nil:
		return kind, argument("the volume capability names no access type")
	case isInline:
		return kind, nil
	}
	switch mode := capability.GetAccessMode().GetMode(); mode {
	case csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:
		return kind, nil
	case csi.VolumeCapability_AccessMode_UNKNOWN:
		return kind, argument("the volume capability names no access mode")
	default:
		return kind, fmt.Errorf("%w: the access mode %s is not served: write accessModes: [ReadOnlyMany]", server.ErrArgument, modeName(mode))
	}
}

// modeName is the access mode as a PersistentVolume has it, where there is one.
func modeName(mode csi.VolumeCapability_AccessMode_Mode) string {
	switch mode {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
		return "ReadWriteOnce"
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER:
		return "ReadWriteOncePod"
	case csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:
		return "ReadWriteMany"
	}
	return mode.String()
}

// mustBeReadOnly refuses a pod that does not mount a read-only volume as one: its
// container runtime would let it write.
func mustBeReadOnly(kind attributes.Kind) error {
	if kind == attributes.KindInline {
		return argument("an inline volume is read-only: write readOnly: true beside the driver, in the pod's volumes[].csi")
	}
	return argument("the claim is read-only: write readOnly: true beside claimName, in the pod's volumes[].persistentVolumeClaim")
}
