package driver

import (
	"context"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/podinfo"
	"liken.sh/csicommon/server"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/published"
)

// NodePublishVolume shows the volume at the target. The kubelet repeats it every minute or
// so (CSIDriver requiresRepublish), which brings the Secret and costs nothing else.
func (d *Driver) NodePublishVolume(ctx context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if d.config.Volumes.Republish(request.GetVolumeId(), request.GetTargetPath(), isReadOnly(request), request.GetSecrets()) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	publication, err := readPublication(request)
	if err != nil {
		d.config.Volumes.Refuse(publication, err)
		return nil, err
	}
	if err := d.config.Volumes.Publish(ctx, publication); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// readPublication checks a request by itself, without asking for any state. After an error
// the publication tells whose it was.
func readPublication(request *csi.NodePublishVolumeRequest) (published.Publication, error) {
	context := request.GetVolumeContext()
	p := published.Publication{
		Handle: request.GetVolumeId(), Target: request.GetTargetPath(),
		Attributes: context, Secret: request.GetSecrets(),
	}
	p.Pod, _ = podinfo.Of(context)
	kind, err := readKind(request.GetVolumeCapability(), podinfo.IsInline(context))
	p.Kind = kind
	switch {
	case err != nil:
		return p, err
	case handle.Check(p.Handle) != nil:
		return p, handle.Check(p.Handle)
	case p.Target == "":
		return p, server.Argument("the target path is missing")
	case !request.GetReadonly() && kind != attributes.KindWriteable:
		return p, mustBeReadOnly(kind)
	}
	if p.Options, err = mount.ParseOptions(request.GetVolumeCapability().GetMount().GetMountFlags()); err != nil {
		return p, fmt.Errorf("%w: %w", server.ErrArgument, err)
	}
	p.Options.ReadOnly = isReadOnly(request)
	p.Group, err = groupOf(request.GetVolumeCapability())
	return p, err
}

// isReadOnly tells whether the pod is not to write the volume, be it that the pod says so
// or the PersistentVolume's mount options.
func isReadOnly(request *csi.NodePublishVolumeRequest) bool {
	return request.GetReadonly() || slices.Contains(request.GetVolumeCapability().GetMount().GetMountFlags(), "ro")
}

// NodeUnpublishVolume takes the volume off the target. A handle that is unknown or could
// never be one is no error (the kubelet must be able to get rid of a pod whatever its
// volume was), an empty one is.
func (d *Driver) NodeUnpublishVolume(ctx context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := server.Identified(request.GetVolumeId(), request.GetTargetPath(), "target path"); err != nil {
		return nil, err
	}
	if err := d.config.Volumes.Unpublish(ctx, request.GetVolumeId(), request.GetTargetPath()); err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
