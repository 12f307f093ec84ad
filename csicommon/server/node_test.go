package server

import (
	"errors"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"

	"liken.sh/csicommon/usage"
)

func TestIdentified(t *testing.T) {
	for _, row := range []struct{ volume, path, want string }{
		{"v", "/t", ""},
		{"NO/HANDLE", "/t", ""},
		{"", "/t", "the volume id is missing"},
		{"v", "", "the target path is missing"},
		{"", "", "the volume id is missing"},
	} {
		err := Identified(row.volume, row.path, "target path")
		switch {
		case row.want == "" && err != nil:
			t.Errorf("%q at %q: %v", row.volume, row.path, err)
		case row.want != "" && (!errors.Is(err, ErrArgument) || !strings.HasSuffix(err.Error(), row.want)):
			t.Errorf("%q at %q: %v, want %q", row.volume, row.path, err, row.want)
		}
	}
}

func TestFilesystem(t *testing.T) {
	mounted := &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}}}
	if err := Filesystem(mounted); err != nil {
		t.Errorf("a volume to mount is refused: %v", err)
	}
	for want, capability := range map[string]*csi.VolumeCapability{
		"capability is missing":  nil,
		"volumeMode: Filesystem": {AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}},
		"names no access type":   {},
	} {
		if err := Filesystem(capability); !errors.Is(err, ErrArgument) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v: %v, want %q", capability, err, want)
		}
	}
}

func TestNodeCapabilities(t *testing.T) {
	var got []csi.NodeServiceCapability_RPC_Type
	for _, c := range NodeCapabilities(csi.NodeServiceCapability_RPC_GET_VOLUME_STATS, csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH).GetCapabilities() {
		got = append(got, c.GetRpc().GetType())
	}
	if len(got) != 2 || got[0] != csi.NodeServiceCapability_RPC_GET_VOLUME_STATS || got[1] != csi.NodeServiceCapability_RPC_GET_VOLUME_HEALTH {
		t.Errorf("the answer lists %v", got)
	}
}

func TestVolumeStats(t *testing.T) {
	got := VolumeStats(usage.Usage{Bytes: 7, Inodes: 3}, usage.Space{Bytes: 100, AvailableBytes: 60, Inodes: 10, AvailableInodes: 6})
	want := &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Used: 7, Total: 100, Available: 60},
		{Unit: csi.VolumeUsage_INODES, Used: 3, Total: 10, Available: 6},
	}}
	if !proto.Equal(got, want) {
		t.Errorf("the answer is %v, want %v", got, want)
	}
}
