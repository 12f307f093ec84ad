package driver

import (
	"fmt"
	"strconv"

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
	if err := server.Filesystem(capability); err != nil || isInline {
		return kind, err
	}
	switch mode := capability.GetAccessMode().GetMode(); mode {
	case csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:
		return attributes.KindReadOnlyClaim, nil
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER:
		return attributes.KindWriteable, nil
	case csi.VolumeCapability_AccessMode_UNKNOWN:
		return kind, server.Argument("the volume capability names no access mode")
	default:
		return kind, fmt.Errorf("%w: the access mode %s is not served: write accessModes: [ReadWriteOncePod] for a volume that one pod writes, "+
			"or [ReadOnlyMany] for one that many read", server.ErrArgument, modeName(mode))
	}
}

// modeName is the access mode as a PersistentVolume has it, where there is one.
func modeName(mode csi.VolumeCapability_AccessMode_Mode) string {
	switch mode {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:
		return "ReadWriteOnce"
	case csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:
		return "ReadWriteMany"
	}
	return mode.String()
}

// groupOf is the volume mount group, which the kubelet takes from the pod's fsGroup; nil:
// there is none.
func groupOf(capability *csi.VolumeCapability) (*uint32, error) {
	text := capability.GetMount().GetVolumeMountGroup()
	if text == "" {
		return nil, nil //nolint:nilnil // No group is no error.
	}
	group, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%w: the volume mount group %q is no number of a group", server.ErrArgument, text)
	}
	number := uint32(group)
	return &number, nil
}

// mustBeReadOnly refuses a pod that does not mount a read-only volume as one: its
// container runtime would let it write.
func mustBeReadOnly(kind attributes.Kind) error {
	if kind == attributes.KindInline {
		return server.Argument("an inline volume is read-only: write readOnly: true beside the driver, in the pod's volumes[].csi")
	}
	return server.Argument("the claim is read-only: write readOnly: true beside claimName, in the pod's volumes[].persistentVolumeClaim")
}
