package driver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/podinfo"
	"liken.sh/csicommon/server"
	"liken.sh/csicommon/usage"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/driver"
	"liken.sh/gitvolume/internal/published"
	"liken.sh/gitvolume/internal/report"
)

// node is what the driver asks, recording it.
type node struct {
	err                  error
	isRepeated           bool
	asked                int
	published            []published.Publication
	refused, unpublished []string
	staged               []published.Staging
	unstaged             []string
	abnormal             []report.Reason
}

func (n *node) Republish(_, _ string, isReadOnly bool, _ map[string]string) bool {
	n.asked++
	return n.isRepeated && isReadOnly
}
func (n *node) Publish(_ context.Context, p published.Publication) error {
	n.published = append(n.published, p)
	return n.err
}
func (n *node) Refuse(p published.Publication, err error) {
	n.refused = append(n.refused, p.Pod.Name+": "+err.Error())
}
func (n *node) Unpublish(_ context.Context, volume, at string) error {
	n.unpublished = append(n.unpublished, volume+"@"+at)
	return n.err
}
func (n *node) Stage(_ context.Context, s published.Staging) error {
	n.staged = append(n.staged, s)
	return n.err
}
func (n *node) Unstage(_ context.Context, handle string) error {
	n.unstaged = append(n.unstaged, handle)
	return n.err
}
func (n *node) Space(context.Context, string, string) (published.Space, error) {
	return published.Space{
		Used: usage.Usage{Bytes: 7, Inodes: 3}, Space: usage.Space{Bytes: 100, AvailableBytes: 60, Inodes: 10, AvailableInodes: 6},
	}, n.err
}
func (n *node) Abnormal(string) []report.Reason { return n.abnormal }

const at = "/var/lib/kubelet/pods/u-1/volumes/kubernetes.io~csi/pv-1/mount"

func capability(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	}
}

func request(change ...func(*csi.NodePublishVolumeRequest)) *csi.NodePublishVolumeRequest {
	r := &csi.NodePublishVolumeRequest{
		VolumeId: "h1", TargetPath: at, Readonly: true,
		VolumeCapability: capability(csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY),
		VolumeContext:    map[string]string{"url": "https://h/r", podinfo.KeyName: "web-0", podinfo.KeyNamespace: "apps", podinfo.KeyUID: "u-1"},
		Secrets:          map[string]string{"token": "t"},
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func TestPublishHandsTheRequestOn(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*csi.NodePublishVolumeRequest)
		kind   attributes.Kind
	}{
		"a claim": {func(*csi.NodePublishVolumeRequest) {}, attributes.KindReadOnlyClaim},
		"inline": {func(r *csi.NodePublishVolumeRequest) {
			r.VolumeContext[podinfo.KeyEphemeral] = "true"
			r.VolumeCapability = capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER)
		}, attributes.KindInline},
		"one that is written": {func(r *csi.NodePublishVolumeRequest) {
			r.Readonly = false
			r.VolumeCapability = capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER)
		}, attributes.KindWriteable},
		"one that is written, and not by this pod": {func(r *csi.NodePublishVolumeRequest) {
			r.VolumeCapability = capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER)
		}, attributes.KindWriteable},
	} {
		n := &node{}
		if _, err := driver.New(driver.Config{Volumes: n}).NodePublishVolume(t.Context(), request(row.change)); err != nil {
			t.Fatal(err)
		}
		if len(n.published) != 1 || len(n.refused) != 0 {
			t.Fatalf("%s: published %+v, refused %q", name, n.published, n.refused)
		}
		p := n.published[0]
		if p.Handle != "h1" || p.Target != at || p.Kind != row.kind || p.Secret["token"] != "t" || p.Attributes["url"] != "https://h/r" ||
			p.Pod != (podinfo.Pod{Namespace: "apps", Name: "web-0", UID: "u-1"}) {
			t.Errorf("%s: published %+v", name, p)
		}
	}
}

func TestVolumeMountGroup(t *testing.T) {
	for text, want := range map[string]string{"": "none", "0": "0", "4294967295": "4294967295", "4294967296": "refused", "-1": "refused", "staff": "refused"} {
		n := &node{}
		_, err := driver.New(driver.Config{Volumes: n}).NodePublishVolume(t.Context(), request(func(r *csi.NodePublishVolumeRequest) {
			r.VolumeCapability = capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER)
			r.VolumeCapability.GetMount().VolumeMountGroup = text
		}))
		got := "none"
		switch {
		case errors.Is(err, server.ErrArgument):
			got = "refused"
		case err != nil:
			t.Fatal(err)
		case n.published[0].Group != nil:
			got = fmt.Sprint(*n.published[0].Group)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestARepeatedPublishIsNotOneMore(t *testing.T) {
	n := &node{isRepeated: true}
	if _, err := driver.New(driver.Config{Volumes: n}).NodePublishVolume(t.Context(), request()); err != nil || len(n.published) > 0 || n.asked != 1 {
		t.Errorf("%v, published %+v, asked %d times", err, n.published, n.asked)
	}
}

// The mount option ro counts in what is repeated as it does in what is published first.
func TestARepeatedPublishWithTheOptionRO(t *testing.T) {
	n := &node{isRepeated: true}
	_, err := driver.New(driver.Config{Volumes: n}).NodePublishVolume(t.Context(), request(func(r *csi.NodePublishVolumeRequest) {
		r.Readonly = false
		r.VolumeCapability = capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER)
		r.VolumeCapability.GetMount().MountFlags = []string{"noexec", "ro"}
	}))
	if err != nil || len(n.published) > 0 || n.asked != 1 {
		t.Errorf("%v, published %+v, asked %d times", err, n.published, n.asked)
	}
}

func TestPublishRefusesBadRequests(t *testing.T) {
	mode := func(m csi.VolumeCapability_AccessMode_Mode) func(*csi.NodePublishVolumeRequest) {
		return func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability = capability(m) }
	}
	for name, row := range map[string]struct {
		change func(*csi.NodePublishVolumeRequest)
		words  string
	}{
		"no handle":             {func(r *csi.NodePublishVolumeRequest) { r.VolumeId = "" }, "empty"},
		"a path as a handle":    {func(r *csi.NodePublishVolumeRequest) { r.VolumeId = "a/../b" }, `"a/../b"`},
		"no target":             {func(r *csi.NodePublishVolumeRequest) { r.TargetPath = "" }, "target path"},
		"no capability":         {func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability = nil }, "capability"},
		"no access type":        {func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.AccessType = nil }, "access type"},
		"no access mode":        {func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.AccessMode = nil }, "access mode"},
		"ReadWriteOnce":         {mode(csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER), "ReadWriteOnce is not served: write accessModes: [ReadWriteOncePod]"},
		"ReadWriteMany":         {mode(csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER), "ReadWriteMany"},
		"another mode":          {mode(csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER), "MULTI_NODE_SINGLE_WRITER"},
		"an option":             {func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.GetMount().MountFlags = []string{"vers=4"} }, `"vers=4"`},
		"a claim not read-only": {func(r *csi.NodePublishVolumeRequest) { r.Readonly = false }, "persistentVolumeClaim"},
		"inline, not read-only": {func(r *csi.NodePublishVolumeRequest) {
			r.Readonly = false
			r.VolumeContext[podinfo.KeyEphemeral] = "true"
		}, "volumes[].csi"},
		"not read-only any more": {func(r *csi.NodePublishVolumeRequest) { r.Readonly = false }, "readOnly: true"},
		"block": {func(r *csi.NodePublishVolumeRequest) {
			r.VolumeCapability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		}, "volumeMode: Filesystem"},
	} {
		n := &node{isRepeated: strings.HasPrefix(name, "not read-only")}
		_, err := driver.New(driver.Config{Volumes: n}).NodePublishVolume(t.Context(), request(row.change))
		if !errors.Is(err, server.ErrArgument) && !errors.Is(err, handle.ErrInvalid) || !strings.Contains(fmt.Sprint(err), row.words) {
			t.Errorf("%s: %v, want an invalid argument with %q", name, err, row.words)
		}
		if len(n.refused) != 1 || !strings.HasPrefix(n.refused[0], "web-0: ") || len(n.published) > 0 {
			t.Errorf("%s: refused %q, published %+v", name, n.refused, n.published)
		}
	}
}

// C10: what is no handle is refused before anything is asked, quoted.
func TestHandles(t *testing.T) {
	for _, bad := range []string{
		"", ".", "..", "../x", "a/../b", "/etc", "a/b", "%2e%2e", "a%00", "A", "a_b", "-a", "a-", ".a", "a.", "a..b", "a ", " a",
		"a\n", "a\tb", `a\b`, "\xc3\xa9", "\xef\xbd\x81", strings.Repeat("a", 254),
	} {
		n := &node{}
		_, err := driver.New(driver.Config{Volumes: n}).NodePublishVolume(t.Context(), request(func(r *csi.NodePublishVolumeRequest) { r.VolumeId = bad }))
		if !errors.Is(err, handle.ErrInvalid) || len(n.published) > 0 || len(n.refused) != 1 || strings.ContainsAny(n.refused[0], "\n\t") {
			t.Errorf("%q: %v, refused %q", bad, err, n.refused)
		}
	}
	for _, good := range []string{"a", "0", "a.b", "a-b.c-d", strings.Repeat("a", 253), "a" + strings.Repeat(".a", 126)} {
		n := &node{}
		_, err := driver.New(driver.Config{Volumes: n}).NodePublishVolume(t.Context(), request(func(r *csi.NodePublishVolumeRequest) { r.VolumeId = good }))
		if err != nil || len(n.published) != 1 {
			t.Errorf("%q: %v", good, err)
		}
	}
}

func TestStageAndUnstage(t *testing.T) {
	n := &node{}
	d := driver.New(driver.Config{Volumes: n})
	ask := &csi.NodeStageVolumeRequest{
		VolumeId: "h1", StagingTargetPath: "/s", VolumeContext: map[string]string{"url": "https://h/r"},
		VolumeCapability: capability(csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY), Secrets: map[string]string{"token": "t"},
	}
	if _, err := d.NodeStageVolume(t.Context(), ask); err != nil || len(n.staged) != 1 || n.staged[0].Secret["token"] != "t" {
		t.Errorf("%v, staged %+v", err, n.staged)
	}
	for _, bad := range []*csi.NodeStageVolumeRequest{{StagingTargetPath: "/s"}, {VolumeId: "h1"}, {VolumeId: "h1", StagingTargetPath: "/s"}} {
		if _, err := d.NodeStageVolume(t.Context(), bad); err == nil {
			t.Errorf("%v is staged", bad)
		}
	}
	if _, err := d.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: "h1", StagingTargetPath: "/s"}); err != nil || len(n.unstaged) != 1 {
		t.Errorf("%v, unstaged %q", err, n.unstaged)
	}
	for _, bad := range []*csi.NodeUnstageVolumeRequest{{StagingTargetPath: "/s"}, {VolumeId: "h1"}} {
		if _, err := d.NodeUnstageVolume(t.Context(), bad); !errors.Is(err, server.ErrArgument) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestUnpublish(t *testing.T) {
	n := &node{}
	d := driver.New(driver.Config{Volumes: n})
	for _, bad := range []*csi.NodeUnpublishVolumeRequest{{TargetPath: at}, {VolumeId: "h1"}} {
		if _, err := d.NodeUnpublishVolume(t.Context(), bad); !errors.Is(err, server.ErrArgument) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if _, err := d.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "../x", TargetPath: at}); err != nil || len(n.unpublished) != 1 {
		t.Errorf("%v, unpublished %q", err, n.unpublished)
	}
}

func TestStatsAndHealth(t *testing.T) {
	n := &node{abnormal: []report.Reason{
		{Severity: report.Inaccessible, Reason: "TreeUnreadable", Message: "m"}, {Reason: "FetchFailed", Message: "m"},
	}}
	d := driver.New(driver.Config{Volumes: n, NodeID: "node-1"})
	stats, err := d.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "h1", VolumePath: at})
	if err != nil || len(stats.GetUsage()) != 2 || stats.GetUsage()[0].GetUsed() != 7 || stats.GetUsage()[1].GetAvailable() != 6 {
		t.Errorf("%v, %v", stats, err)
	}
	for _, bad := range []*csi.NodeGetVolumeStatsRequest{{VolumePath: at}, {VolumeId: "h1"}} {
		if _, err := d.NodeGetVolumeStats(t.Context(), bad); !errors.Is(err, server.ErrArgument) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	health, err := d.NodeGetVolumeHealth(t.Context(), &csi.NodeGetVolumeHealthRequest{VolumeId: "h1"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range health.GetVolumeHealth().GetHealthStatuses() {
		got = append(got, s.GetStatus().String()+" "+s.GetReason())
	}
	if strings.Join(got, ", ") != "INACCESSIBLE TreeUnreadable, DEGRADED FetchFailed" {
		t.Errorf("statuses %q", got)
	}
	if _, err := d.NodeGetVolumeHealth(t.Context(), &csi.NodeGetVolumeHealthRequest{}); !errors.Is(err, server.ErrArgument) {
		t.Errorf("no volume id: %v", err)
	}
	info, err := d.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	if err != nil || info.GetNodeId() != "node-1" {
		t.Errorf("%v, %v", info, err)
	}
	capabilities, err := d.NodeGetCapabilities(t.Context(), &csi.NodeGetCapabilitiesRequest{})
	if err != nil || len(capabilities.GetCapabilities()) != 5 {
		t.Errorf("%v, %v", capabilities, err)
	}
}
