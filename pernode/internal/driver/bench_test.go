package driver

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/event"
	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/podinfo"
	"liken.sh/pernode/internal/copies"
	"liken.sh/pernode/internal/inspect"
)

// nobody hears of publishes: what they cost alone is measured.
type nobody struct{}

func (nobody) Wanted(string, string) {}
func (nobody) Published(string)      {}
func (nobody) Released(string)       {}

// benchDriver is the service with a real store and real mounts below the kubelet
// directory root, as without an API server.
func benchDriver(b *testing.B, root string) *Driver {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	dir, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	mounts, err := mount.New(mount.Config{Scratch: filepath.Join(dir, copies.ScratchDir), Log: log})
	if err != nil {
		b.Fatal(err)
	}
	store, err := copies.Open(copies.Config{
		Dir: dir, KubeletDir: root, Mounts: mounts, Log: log,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	return New(Config{
		NodeID: "node-1", Store: store, Sweeper: nobody{}, Events: event.NewLog(log),
		Inspector: inspect.New(inspect.Config{Store: store, Log: log}),
		Refused:   func(context.Context, string) {},
	})
}

func benchRequest(b *testing.B, root string) *csi.NodePublishVolumeRequest {
	b.Helper()
	target := filepath.Join(root, "pods", "8c1d4c2e-6e5f-4c1b-9a55-2f7a3b1c9d0e", "volumes", "kubernetes.io~csi", "data", "mount")
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		b.Fatal(err)
	}
	return &csi.NodePublishVolumeRequest{
		VolumeId: "data", TargetPath: target,
		VolumeCapability: &csi.VolumeCapability{
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		},
		VolumeContext: map[string]string{podinfo.KeyName: "db-0", podinfo.KeyNamespace: "default", podinfo.KeyUID: "8c1d4c2e-6e5f-4c1b-9a55-2f7a3b1c9d0e"},
	}
}

// among runs bench on a node with few and with many mounts of other volumes.
func among(b *testing.B, bench func(b *testing.B, d *Driver, request *csi.NodePublishVolumeRequest)) {
	for _, others := range []int{50, 5000} {
		b.Run(fmt.Sprintf("mounts=%d", others), func(b *testing.B) {
			root, source := mountns.SharedDir(b), b.TempDir()
			for n := range others {
				target := filepath.Join(root, "others", strconv.Itoa(n))
				if err := os.MkdirAll(target, 0o750); err != nil {
					b.Fatal(err)
				}
				if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
					b.Fatal(err)
				}
			}
			bench(b, benchDriver(b, root), benchRequest(b, root))
		})
	}
}

// BenchmarkRepeatedPublish publishes what is published already, as the kubelet does
// after each of its restarts. The aim is less than 20 µs.
func BenchmarkRepeatedPublish(b *testing.B) {
	among(b, func(b *testing.B, d *Driver, request *csi.NodePublishVolumeRequest) {
		if _, err := d.NodePublishVolume(b.Context(), request); err != nil {
			b.Fatal(err)
		}
		before := processorTime(b)
		for b.Loop() {
			if _, err := d.NodePublishVolume(b.Context(), request); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
	})
}

// processorTime is what the process has taken so far, which other processes on a
// busy machine change less than the time on the clock.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkPublishAndUnpublish does both without a socket.
func BenchmarkPublishAndUnpublish(b *testing.B) {
	among(b, func(b *testing.B, d *Driver, request *csi.NodePublishVolumeRequest) {
		undo := &csi.NodeUnpublishVolumeRequest{VolumeId: request.GetVolumeId(), TargetPath: request.GetTargetPath()}
		for b.Loop() {
			if _, err := d.NodePublishVolume(b.Context(), request); err != nil {
				b.Fatal(err)
			}
			if _, err := d.NodeUnpublishVolume(b.Context(), undo); err != nil {
				b.Fatal(err)
			}
		}
	})
}
