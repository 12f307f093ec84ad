package kubelet

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
)

// Pod is what the kubelet tells a plugin about a pod (podInfoOnMount).
type Pod struct{ UID, Namespace, Name string }

// Volume is a PersistentVolume as one pod uses it, or an inline volume of a pod.
type Volume struct {
	PV           string // name of the PersistentVolume, or of the inline volume in its pod
	Handle       string
	AccessMode   corev1.PersistentVolumeAccessMode
	ReadOnly     bool // of the pod's persistentVolumeClaim, or of its csi block
	MountOptions []string
	Attributes   map[string]string
	// Inline is that of Inline.
	Inline bool
	// StageSecret and PublishSecret are what the Secrets hold that nodeStageSecretRef and
	// nodePublishSecretRef name; nil where they name none.
	StageSecret, PublishSecret map[string]string
}

// Inline is a volume that is written into a pod, by its name there. The kubelet makes the
// handle, stages nothing and asks for ReadWriteOnce whatever the volume is.
func Inline(pod Pod, name string, attributes map[string]string) Volume {
	return Volume{
		PV: name, Handle: fmt.Sprintf("csi-%x", sha256.Sum256([]byte(pod.UID+name))), AccessMode: corev1.ReadWriteOnce,
		ReadOnly: true, Attributes: attributes, Inline: true,
	}
}

// Publish stages (where the plugin wants that) and publishes v for pod and
// returns the target.
func (k *Kubelet) Publish(ctx context.Context, v Volume, pod Pod) (target string, err error) {
	capability := k.capability(v)
	staging, err := k.stage(ctx, v, capability)
	if err != nil {
		return "", err
	}
	return k.publish(ctx, v, pod, staging, capability)
}

// Republish publishes v again for a pod that has it, without another stage, as the kubelet
// does every minute or so for a driver with requiresRepublish.
func (k *Kubelet) Republish(ctx context.Context, v Volume, pod Pod) error {
	var staging string
	if k.can(csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME) {
		staging = k.Staging(v.Handle)
	}
	_, err := k.publish(ctx, v, pod, staging, k.capability(v))
	return err
}

func (k *Kubelet) publish(ctx context.Context, v Volume, pod Pod, staging string, capability *csi.VolumeCapability) (target string, err error) {
	target = k.Target(pod.UID, v.PV)
	// Since 1.20 the plugin makes the last component itself.
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return "", fmt.Errorf("make the target's parent: %w", err)
	}
	_, err = k.Node().NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId:          v.Handle,
		TargetPath:        target,
		StagingTargetPath: staging,
		VolumeCapability:  capability,
		Readonly:          v.ReadOnly,
		VolumeContext:     podContext(v, pod),
		Secrets:           v.PublishSecret,
	})
	return target, err
}

// Unpublish takes v away from pod.
func (k *Kubelet) Unpublish(ctx context.Context, v Volume, pod Pod) error {
	_, err := k.Node().NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{
		VolumeId:   v.Handle,
		TargetPath: k.Target(pod.UID, v.PV),
	})
	return err
}

// Unstage is what the kubelet does when the last pod of the node is gone.
func (k *Kubelet) Unstage(ctx context.Context, v Volume) error {
	if !k.stages(v) {
		return nil
	}
	_, err := k.Node().NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{
		VolumeId:          v.Handle,
		StagingTargetPath: k.Staging(v.Handle),
	})
	return err
}

func (k *Kubelet) stage(ctx context.Context, v Volume, capability *csi.VolumeCapability) (string, error) {
	if !k.stages(v) {
		return "", nil
	}
	staging := k.Staging(v.Handle)
	if err := os.MkdirAll(staging, 0o750); err != nil {
		return "", fmt.Errorf("make the staging directory: %w", err)
	}
	_, err := k.Node().NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId:          v.Handle,
		StagingTargetPath: staging,
		VolumeCapability:  capability,
		VolumeContext:     v.Attributes,
		Secrets:           v.StageSecret,
	})
	return staging, err
}

func (k *Kubelet) stages(v Volume) bool {
	return !v.Inline && k.can(csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME)
}

func podContext(v Volume, pod Pod) map[string]string {
	all := maps.Clone(v.Attributes)
	if all == nil {
		all = make(map[string]string)
	}
	all["csi.storage.k8s.io/pod.name"] = pod.Name
	all["csi.storage.k8s.io/pod.namespace"] = pod.Namespace
	all["csi.storage.k8s.io/pod.uid"] = pod.UID
	all["csi.storage.k8s.io/serviceAccount.name"] = "default"
	all["csi.storage.k8s.io/ephemeral"] = strconv.FormatBool(v.Inline)
	return all
}

func (k *Kubelet) capability(v Volume) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: k.accessMode(v.AccessMode)},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{MountFlags: v.MountOptions}},
	}
}

// accessMode is the kubelet's table, which knows the SINGLE_NODE_* pair only for
// plugins that declare SINGLE_NODE_MULTI_WRITER.
func (k *Kubelet) accessMode(mode corev1.PersistentVolumeAccessMode) csi.VolumeCapability_AccessMode_Mode {
	apart := k.can(csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER)
	switch {
	case mode == corev1.ReadOnlyMany:
		return csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
	case mode == corev1.ReadWriteMany:
		return csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER
	case mode == corev1.ReadWriteOncePod && apart:
		return csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
	case mode == corev1.ReadWriteOnce && apart:
		return csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER
	}
	return csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER
}
