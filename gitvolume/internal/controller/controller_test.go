package controller_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"go.opentelemetry.io/otel/metric/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"liken.sh/csicommon/csitest/conformance"
	"liken.sh/csicommon/server"
	"liken.sh/gitvolume/internal/controller"
)

const driver = "git.example"

// serve serves the services until the test ends, and returns their socket.
func serve(t *testing.T) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "csi.sock")
	s, err := server.New(server.Config{
		Driver: driver, Version: "v1", Codes: controller.Codes(), Capabilities: controller.PluginCapabilities(),
		Ready:    func(context.Context) error { return nil },
		Register: func(r grpc.ServiceRegistrar) { controller.Register(r, driver) },
		Meter:    noop.Meter{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := server.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return socket
}

func dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+serve(t), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Sanity makes its volumes by CreateVolume, which is refused, and takes a volume that it
// did not make for one that is missing. A controller knows of no volume.
const notServed = `CreateVolume.*(should return appropriate values|already existing name|maximum-length|with a volume attribute class)|` +
	`DeleteVolume should return appropriate values|` +
	`ValidateVolumeCapabilities (should return appropriate values|should fail when no volume capabilities|should fail when the requested volume does not exist)|` +
	`ModifyVolume \[Controller Server\] should (modify|fail if volume does not exist|fail if specified|fail to modify)|` +
	`Node Service`

func TestSanity(t *testing.T) {
	conformance.RunController(t, serve(t), notServed)
}

// The resizer and the provisioner ask for these before anything else, and end without.
func TestWhatTheSidecarsAskFirst(t *testing.T) {
	conn, ctx := dial(t), t.Context()
	plugin, err := csi.NewIdentityClient(conn).GetPluginCapabilities(ctx, &csi.GetPluginCapabilitiesRequest{})
	if err != nil || len(plugin.GetCapabilities()) != 1 ||
		plugin.GetCapabilities()[0].GetService().GetType() != csi.PluginCapability_Service_CONTROLLER_SERVICE {
		t.Errorf("the plugin has %v, %v", plugin, err)
	}
	had := map[csi.ControllerServiceCapability_RPC_Type]bool{}
	served, err := csi.NewControllerClient(conn).ControllerGetCapabilities(ctx, &csi.ControllerGetCapabilitiesRequest{})
	for _, capability := range served.GetCapabilities() {
		had[capability.GetRpc().GetType()] = true
	}
	if err != nil || len(had) != 2 || !had[csi.ControllerServiceCapability_RPC_MODIFY_VOLUME] ||
		!had[csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME] {
		t.Errorf("the controller has %v, %v", served, err)
	}
	node, err := csi.NewNodeClient(conn).NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err != nil || len(node.GetCapabilities()) != 0 {
		t.Errorf("the node has %v, %v", node, err)
	}
}

func TestControllerModifyVolume(t *testing.T) {
	client := csi.NewControllerClient(dial(t))
	for name, row := range map[string]struct {
		volume     string
		parameters map[string]string
		code       codes.Code
		says       string
	}{
		"no parameter":       {"v", nil, codes.OK, ""},
		"every parameter":    {"v", map[string]string{"push.quiesce": "5s", "push.maxLatency": "never", "commit.maxFileSize": "0", "commit.author": "A <a@b>", "ignore": "*.tmp", "metadata": "false", "armed": "false"}, codes.OK, ""},
		"the resizer's own":  {"v", map[string]string{"armed": "true", "csi.storage.k8s.io/pvc/name": "c"}, codes.OK, ""},
		"an unknown one":     {"v", map[string]string{"armd": "true"}, codes.InvalidArgument, `parameter "armd" is not known`},
		"a malformed one":    {"v", map[string]string{"push.quiesce": "1s"}, codes.InvalidArgument, `parameter push.quiesce: "1s" is no duration of 5s or more`},
		"the first of two":   {"v", map[string]string{"push.quiesce": "1s", "armed": "yes"}, codes.InvalidArgument, `parameter armed: "yes"`},
		"no volume":          {"", map[string]string{"armed": "true"}, codes.InvalidArgument, "handle"},
		"no possible handle": {"../v", map[string]string{"armed": "true"}, codes.InvalidArgument, `"../v"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.ControllerModifyVolume(t.Context(), &csi.ControllerModifyVolumeRequest{VolumeId: row.volume, MutableParameters: row.parameters})
			if status.Code(err) != row.code || !strings.Contains(status.Convert(err).Message(), row.says) {
				t.Errorf("%v, want %v and %q", err, row.code, row.says)
			}
		})
	}
}

// The words reach a person as an Event, which has room for 1,024 bytes.
func TestCreateVolumeTellsWhatToWrite(t *testing.T) {
	client := csi.NewControllerClient(dial(t))
	longest := strings.Repeat("n", 63)
	for name, row := range map[string]struct {
		parameters map[string]string
		says       []string
	}{
		"the claim named": {
			map[string]string{"csi.storage.k8s.io/pvc/name": "notes", "csi.storage.k8s.io/pvc/namespace": "shop"},
			[]string{"spec.claimRef: {namespace: shop, name: notes}"},
		},
		"the claim not named":  {nil, []string{"spec.claimRef: {namespace: the claim's, name: the claim's}"}},
		"the longest of names": {map[string]string{"csi.storage.k8s.io/pvc/name": strings.Repeat("c", 253), "csi.storage.k8s.io/pvc/namespace": longest}, []string{longest}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.CreateVolume(t.Context(), &csi.CreateVolumeRequest{
				Name: "pvc-1", Parameters: row.parameters, VolumeCapabilities: []*csi.VolumeCapability{capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER)},
			})
			text := status.Convert(err).Message()
			for _, want := range append(row.says, "PersistentVolume", "csi.driver: "+driver, "ReadWriteOncePod", "ReadOnlyMany", "volumeAttributes.url", "storageClassName") {
				if !strings.Contains(text, want) {
					t.Errorf("it says %q, which lacks %q", text, want)
				}
			}
			// What the provisioner writes around it.
			const around = len(`failed to provision volume with StorageClass "": rpc error: code = InvalidArgument desc = `) + 63
			if status.Code(err) != codes.InvalidArgument || len(text) > 1024-around {
				t.Errorf("%d bytes of %v", len(text), err)
			}
		})
	}
}

func capability(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	}
}

func TestDeleteVolume(t *testing.T) {
	client := csi.NewControllerClient(dial(t))
	for volume, code := range map[string]codes.Code{"v": codes.OK, "never there": codes.OK, "": codes.InvalidArgument} {
		_, err := client.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: volume})
		if status.Code(err) != code {
			t.Errorf("%q: %v, want %v", volume, err, code)
		}
	}
}

func TestValidateVolumeCapabilities(t *testing.T) {
	client := csi.NewControllerClient(dial(t))
	block := capability(csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY)
	block.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	if _, err := client.ValidateVolumeCapabilities(t.Context(), &csi.ValidateVolumeCapabilitiesRequest{VolumeId: "v"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("without capabilities: %v", err)
	}
	for name, row := range map[string]struct {
		capability  *csi.VolumeCapability
		isConfirmed bool
	}{
		"ReadOnlyMany":     {capability(csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY), true},
		"ReadWriteOncePod": {capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER), true},
		"ReadWriteOnce":    {capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER), false},
		"a block device":   {block, false},
	} {
		answer, err := client.ValidateVolumeCapabilities(t.Context(), &csi.ValidateVolumeCapabilitiesRequest{
			VolumeId: "v", VolumeCapabilities: []*csi.VolumeCapability{row.capability},
		})
		if err != nil || (answer.GetConfirmed() != nil) != row.isConfirmed || (answer.GetMessage() == "") != row.isConfirmed {
			t.Errorf("%s: %v, %v", name, answer, err)
		}
	}
}
