package driver

import (
	"context"
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"liken.sh/csicommon/event"
	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/keyedmutex"
	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/podinfo"
	"liken.sh/csicommon/server"
	"liken.sh/csicommon/target"
	"liken.sh/pernode/internal/copies"
)

// The reasons of the Events on a pod whose publish was refused.
const (
	reasonRefused = "PerNodeVolumeRefused"
	reasonHeld    = "PerNodeVolumeHeld"
	reasonFailed  = "PerNodeMountFailed"
)

// NodePublishVolume shows this node's copy of the volume at the target.
func (d *Driver) NodePublishVolume(ctx context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	publication, err := readPublication(request)
	if err == nil {
		// Before the work, not after: a sweep that is about to remove the copy of
		// a volume made again has to see that a pod wants it.
		d.config.Sweeper.Wanted(publication.Volume, publication.Hold.PV)
		err = d.config.Store.Publish(ctx, publication)
	}
	if err != nil {
		d.refuse(ctx, request, err)
		return nil, err
	}
	d.config.Sweeper.Published(publication.Volume)
	d.config.Inspector.Touch(publication.Volume)
	return &csi.NodePublishVolumeResponse{}, nil
}

// readPublication checks a request by itself, without asking for any state.
func readPublication(request *csi.NodePublishVolumeRequest) (copies.Publication, error) {
	if err := handle.Check(request.GetVolumeId()); err != nil {
		return copies.Publication{}, err
	}
	if request.GetTargetPath() == "" {
		return copies.Publication{}, server.Argument("the target path is missing")
	}
	options, err := readCapability(request.GetVolumeCapability())
	if err != nil {
		return copies.Publication{}, err
	}
	options.ReadOnly = options.ReadOnly || request.GetReadonly()
	if podinfo.IsInline(request.GetVolumeContext()) {
		// Its handle would be a new one for each pod, so nothing would outlive it.
		return copies.Publication{}, server.Argument("an inline volume is not served, write a PersistentVolume and a claim")
	}
	pod, _ := podinfo.Of(request.GetVolumeContext())
	return copies.Publication{
		Volume:  request.GetVolumeId(),
		Target:  request.GetTargetPath(),
		Options: options,
		Hold: copies.Hold{
			PodUID:       pod.UID,
			PodNamespace: pod.Namespace,
			PodName:      pod.Name,
			PV:           target.VolumeName(request.GetTargetPath()),
		},
	}, nil
}

// readCapability takes every access mode the same way: each publishes this
// node's copy.
func readCapability(capability *csi.VolumeCapability) (mount.Options, error) {
	if err := server.Filesystem(capability); err != nil {
		return mount.Options{}, err
	}
	mode := capability.GetAccessMode().GetMode()
	if _, known := csi.VolumeCapability_AccessMode_Mode_name[int32(mode)]; !known || mode == csi.VolumeCapability_AccessMode_UNKNOWN {
		return mount.Options{}, server.Argument("the volume capability names no access mode of CSI")
	}
	options, err := mount.ParseOptions(capability.GetMount().GetMountFlags())
	if err != nil {
		return mount.Options{}, fmt.Errorf("%w: %w", server.ErrArgument, err)
	}
	return options, nil
}

// refuse tells the pod's owner why the pod does not start. A call that was only
// too early (the volume is busy, the caller left) is not worth an Event: the
// kubelet comes again.
func (d *Driver) refuse(ctx context.Context, request *csi.NodePublishVolumeRequest, err error) {
	reason := refusal(err)
	if reason == "" {
		return
	}
	d.config.Refused(ctx, reason)
	pod, known := podinfo.Of(request.GetVolumeContext())
	if !known {
		return // not a kubelet: there is nobody to tell but the caller
	}
	d.config.Events.Post(event.Pod(pod.Namespace, pod.Name, pod.UID), event.Warning, reason, err.Error())
}

func refusal(err error) string {
	switch {
	case errors.Is(err, keyedmutex.ErrBusy), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ""
	case errors.Is(err, handle.ErrInvalid):
		return reasonRefused
	case errors.Is(err, copies.ErrHeld):
		return reasonHeld
	}
	return reasonFailed
}
