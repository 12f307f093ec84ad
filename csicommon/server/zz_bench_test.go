package server

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"go.opentelemetry.io/otel/metric/noop"
	"google.golang.org/grpc"
)

func BenchmarkLogCall(b *testing.B) {
	f, _ := os.CreateTemp(b.TempDir(), "x")
	o, _ := newObserver(Config{Driver: "x", Meter: noop.Meter{}, Log: slog.New(slog.NewTextHandler(f, nil))})
	req := &csi.NodePublishVolumeRequest{
		VolumeId: "data", TargetPath: "/var/lib/kubelet/pods/8c1d4c2e-6e5f-4c1b-9a55-2f7a3b1c9d0e/volumes/kubernetes.io~csi/data/mount",
		VolumeCapability: &csi.VolumeCapability{
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		},
		VolumeContext: map[string]string{"csi.storage.k8s.io/pod.name": "a", "csi.storage.k8s.io/pod.namespace": "b", "csi.storage.k8s.io/pod.uid": "c", "csi.storage.k8s.io/serviceAccount.name": "default"},
	}
	b.Run("log", func(b *testing.B) {
		for b.Loop() {
			o.logCall(context.Background(), req, "/csi.v1.Node/NodePublishVolume", nil, time.Millisecond)
		}
	})
	b.Run("intercept", func(b *testing.B) {
		for b.Loop() {
			o.intercept(context.Background(), req, &grpc.UnaryServerInfo{FullMethod: "/csi.v1.Node/NodePublishVolume"}, func(context.Context, any) (any, error) { return nil, nil })
		}
	})
}
