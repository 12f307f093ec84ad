package driver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"liken.sh/csicommon/event"
	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/keyedmutex"
	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/server"
	"liken.sh/csicommon/usage"
	"liken.sh/pernode/internal/copies"
	"liken.sh/pernode/internal/driver"
	"liken.sh/pernode/internal/inspect"
)

// node is every dependency of the driver, recording what it was asked.
type node struct {
	err             error
	published       []copies.Publication
	wished          []string
	unpublish       []string
	released, given int
	events          []string
	refused         []string
	conditions      []inspect.Condition
}

func (n *node) Publish(_ context.Context, p copies.Publication) error {
	n.published = append(n.published, p)
	return n.err
}

func (n *node) Unpublish(_ context.Context, volume, target string) error {
	n.unpublish = append(n.unpublish, volume+"@"+target)
	return n.err
}

func (n *node) SpaceAt(context.Context, string, string) (usage.Space, error) {
	return usage.Space{Bytes: 100, AvailableBytes: 60, Inodes: 10, AvailableInodes: 6}, n.err
}

func (n *node) Wanted(volume, pv string)                 { n.wished = append(n.wished, volume+"="+pv) }
func (n *node) Published(string)                         { n.given++ }
func (n *node) Released(string)                          { n.released++ }
func (n *node) Touch(string)                             {}
func (n *node) Verdict(string) []inspect.Condition       { return n.conditions }
func (n *node) Refused(_ context.Context, reason string) { n.refused = append(n.refused, reason) }
func (n *node) Usage(context.Context, string) (usage.Usage, error) {
	return usage.Usage{Bytes: 7, Inodes: 3}, nil
}

func (n *node) Post(about event.Object, kind event.Type, reason, message string) {
	n.events = append(n.events, fmt.Sprintf("%s %s %s/%s %s: %s", kind, reason, about.Namespace, about.Name, about.UID, message))
}

func newDriver(n *node) *driver.Driver {
	return driver.New(driver.Config{
		NodeID: "node-1", Store: n, Sweeper: n, Inspector: n, Events: n, Refused: n.Refused,
	})
}

const target = "/var/lib/kubelet/pods/u-1/volumes/kubernetes.io~csi/pv-1/mount"

func publishRequest(change ...func(*csi.NodePublishVolumeRequest)) *csi.NodePublishVolumeRequest {
	request := &csi.NodePublishVolumeRequest{
		VolumeId:   "h1",
		TargetPath: target,
		VolumeCapability: &csi.VolumeCapability{
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}},
		},
		VolumeContext: map[string]string{
			"csi.storage.k8s.io/pod.name": "db-0", "csi.storage.k8s.io/pod.namespace": "apps", "csi.storage.k8s.io/pod.uid": "u-1",
		},
	}
	for _, c := range change {
		c(request)
	}
	return request
}

func flags(all ...string) func(*csi.NodePublishVolumeRequest) {
	return func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.GetMount().MountFlags = all }
}

func TestPublishHandsTheRequestOn(t *testing.T) {
	n := &node{}
	_, err := newDriver(n).NodePublishVolume(t.Context(), publishRequest(flags("noexec", "ro")))
	if err != nil {
		t.Fatal(err)
	}
	want := copies.Publication{
		Volume: "h1", Target: target, Options: mount.Options{ReadOnly: true, NoExec: true},
		Hold: copies.Hold{PodUID: "u-1", PodNamespace: "apps", PodName: "db-0", PV: "pv-1"},
	}
	if len(n.published) != 1 || n.published[0] != want {
		t.Errorf("published %+v, want %+v", n.published, want)
	}
	if len(n.wished) != 1 || n.wished[0] != "h1=pv-1" || len(n.events) != 0 {
		t.Errorf("wished %q, events %q", n.wished, n.events)
	}
}

func TestPublishRefusesBadRequests(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*csi.NodePublishVolumeRequest)
		words  string
		reason string
	}{
		{"no handle", func(r *csi.NodePublishVolumeRequest) { r.VolumeId = "" }, "empty", "PerNodeVolumeRefused"},
		{"a handle that is a path", func(r *csi.NodePublishVolumeRequest) { r.VolumeId = "a/../b" }, `"a/../b"`, "PerNodeVolumeRefused"},
		{"a handle with a newline", func(r *csi.NodePublishVolumeRequest) { r.VolumeId = "a\n" }, `"a\n"`, "PerNodeVolumeRefused"},
		{"no target", func(r *csi.NodePublishVolumeRequest) { r.TargetPath = "" }, "target path", "PerNodeMountFailed"},
		{"no capability", func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability = nil }, "capability", "PerNodeMountFailed"},
		{"no access mode", func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.AccessMode = nil }, "access mode", "PerNodeMountFailed"},
		{"an access mode that is none", func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.AccessMode.Mode = 99 }, "access mode", "PerNodeMountFailed"},
		{"no access type", func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.AccessType = nil }, "access type", "PerNodeMountFailed"},
		{"block", func(r *csi.NodePublishVolumeRequest) {
			r.VolumeCapability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		}, "volumeMode: Filesystem", "PerNodeMountFailed"},
		{"inline in a pod", func(r *csi.NodePublishVolumeRequest) { r.VolumeContext["csi.storage.k8s.io/ephemeral"] = "true" }, "PersistentVolume", "PerNodeMountFailed"},
		{"an option of another file system", flags("ro", "vers=4.1"), `"vers=4.1"`, "PerNodeMountFailed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			n := &node{}
			_, err := newDriver(n).NodePublishVolume(t.Context(), publishRequest(row.change))
			if !errors.Is(err, server.ErrArgument) && !errors.Is(err, handle.ErrInvalid) {
				t.Errorf("%v is no invalid argument", err)
			}
			if err == nil || !strings.Contains(err.Error(), row.words) {
				t.Errorf("%v does not say %q", err, row.words)
			}
			if len(n.events) != 1 || !strings.HasPrefix(n.events[0], "Warning "+row.reason+" apps/db-0 u-1: ") {
				t.Errorf("Events %q, want one %s on the pod", n.events, row.reason)
			}
			if len(n.published) != 0 {
				t.Error("the store was asked all the same")
			}
		})
	}
}

func TestEveryAccessModePublishesTheSameWay(t *testing.T) {
	for mode, name := range csi.VolumeCapability_AccessMode_Mode_name {
		n := &node{}
		_, err := newDriver(n).NodePublishVolume(t.Context(), publishRequest(func(r *csi.NodePublishVolumeRequest) {
			r.VolumeCapability.AccessMode.Mode = csi.VolumeCapability_AccessMode_Mode(mode)
		}))
		if refused := err != nil; refused != (mode == 0) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhichFailuresAreEvents(t *testing.T) {
	for _, row := range []struct {
		err    error
		reason string
	}{
		{&copies.HeldError{Volume: "h1", Target: "/t"}, "PerNodeVolumeHeld"},
		{fmt.Errorf("bind: %w", mount.ErrNotShared), "PerNodeMountFailed"},
		{copies.ErrUndecided, "PerNodeMountFailed"},
		{fmt.Errorf("%w (%w)", keyedmutex.ErrBusy, context.DeadlineExceeded), ""},
		{context.Canceled, ""},
	} {
		n := &node{err: row.err}
		if _, err := newDriver(n).NodePublishVolume(t.Context(), publishRequest()); !errors.Is(err, row.err) {
			t.Errorf("%v became %v", row.err, err)
		}
		if strings.Join(n.refused, " ") != row.reason {
			t.Errorf("%v counted as %q, want %q", row.err, n.refused, row.reason)
		}
		if row.reason == "" && len(n.events) != 0 || row.reason != "" && len(n.events) != 1 {
			t.Errorf("%v: Events %q", row.err, n.events)
		}
	}
}

func TestACallerWithoutAPodGetsNoEvent(t *testing.T) {
	n := &node{err: copies.ErrHeld}
	_, err := newDriver(n).NodePublishVolume(t.Context(), publishRequest(func(r *csi.NodePublishVolumeRequest) { r.VolumeContext = nil }))
	if err == nil || len(n.events) != 0 || len(n.refused) != 1 {
		t.Errorf("%v, Events %q, counted %q", err, n.events, n.refused)
	}
}

func TestUnpublish(t *testing.T) {
	n := &node{}
	d := newDriver(n)
	for _, request := range []*csi.NodeUnpublishVolumeRequest{{TargetPath: target}, {VolumeId: "h1"}} {
		if _, err := d.NodeUnpublishVolume(t.Context(), request); !errors.Is(err, server.ErrArgument) {
			t.Errorf("%v: %v, want ErrArgument", request, err)
		}
	}
	if _, err := d.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "../x", TargetPath: target}); err != nil {
		t.Errorf("a handle that could never be one: %v", err)
	}
	if len(n.unpublish) != 1 || n.released != 0 {
		t.Errorf("store asked for %q, sweeper told %d times for what is no volume", n.unpublish, n.released)
	}
	if _, err := d.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "h1", TargetPath: target}); err != nil {
		t.Error(err)
	}
	if len(n.unpublish) != 2 || n.released != 1 {
		t.Errorf("store asked for %q, sweeper told %d times", n.unpublish, n.released)
	}
}

func TestStats(t *testing.T) {
	n := &node{}
	response, err := newDriver(n).NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "h1", VolumePath: target})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range response.GetUsage() {
		got := fmt.Sprint(u.GetUnit(), u.GetUsed(), u.GetTotal(), u.GetAvailable())
		if got != "BYTES 7 100 60" && got != "INODES 3 10 6" {
			t.Errorf("usage %s", got)
		}
	}
	for _, request := range []*csi.NodeGetVolumeStatsRequest{{VolumePath: target}, {VolumeId: "h1"}} {
		if _, err := newDriver(n).NodeGetVolumeStats(t.Context(), request); !errors.Is(err, server.ErrArgument) {
			t.Errorf("%v: %v, want ErrArgument", request, err)
		}
	}
}

func TestHealth(t *testing.T) {
	n := &node{}
	d := newDriver(n)
	if _, err := d.NodeGetVolumeHealth(t.Context(), &csi.NodeGetVolumeHealthRequest{}); !errors.Is(err, server.ErrArgument) {
		t.Errorf("no volume id: %v, want ErrArgument", err)
	}
	response, err := d.NodeGetVolumeHealth(t.Context(), &csi.NodeGetVolumeHealthRequest{VolumeId: "never-seen"})
	if err != nil || response.GetVolumeHealth().GetVolumeId() != "never-seen" || len(response.GetVolumeHealth().GetHealthStatuses()) != 0 {
		t.Errorf("an unknown volume: %v, %v", response, err)
	}
	n.conditions = []inspect.Condition{
		{Severity: inspect.Inaccessible, Reason: inspect.CopyUnreadable, Message: "m"},
		{Severity: inspect.Degraded, Reason: inspect.StoreFull, Message: "m"},
	}
	response, err = d.NodeGetVolumeHealth(t.Context(), &csi.NodeGetVolumeHealthRequest{VolumeId: "h1"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range response.GetVolumeHealth().GetHealthStatuses() {
		got = append(got, s.GetStatus().String()+" "+s.GetReason())
	}
	if strings.Join(got, ", ") != "INACCESSIBLE CopyUnreadable, DEGRADED StoreFull" {
		t.Errorf("statuses %q", got)
	}
}

func TestNodeDescribesItself(t *testing.T) {
	d := newDriver(&node{})
	info, err := d.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	if err != nil || info.GetNodeId() != "node-1" || info.GetAccessibleTopology() != nil {
		t.Errorf("NodeGetInfo = %v, %v", info, err)
	}
	capabilities, err := d.NodeGetCapabilities(t.Context(), &csi.NodeGetCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range capabilities.GetCapabilities() {
		got = append(got, c.GetRpc().GetType().String())
	}
	if strings.Join(got, " ") != "GET_VOLUME_STATS SINGLE_NODE_MULTI_WRITER GET_VOLUME_HEALTH" {
		t.Errorf("capabilities %q", got)
	}
}
