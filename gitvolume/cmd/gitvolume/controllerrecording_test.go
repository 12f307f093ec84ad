package main

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/page"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
)

// A controller that met everything that it counts.
func TestRecordingOfTheController(t *testing.T) {
	t.Parallel()
	server := demanding()
	h := newHome(t)
	c := h.startsWebhook(server, "--endpoint", "unix://"+h.runtime+"/csi.sock")
	heal := server.Inject(apiserver.Fault{Do: apiserver.Refuse(503)})
	server.DropWatches()
	for _, want := range []int{http.StatusInternalServerError, http.StatusAccepted} {
		process.Await(t, fmt.Sprintf("a push to be answered %d", want), func() bool { return c.pushes("s3cret") == want })
		heal()
	}
	if code := c.pushes("wrong"); code != http.StatusUnauthorized {
		t.Errorf("a wrong signature is answered %d", code)
	}
	conn, err := grpc.NewClient("unix://"+c.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for value, want := range map[string]codes.Code{"true": codes.OK, "perhaps": codes.InvalidArgument} {
		_, err := csi.NewControllerClient(conn).ControllerModifyVolume(t.Context(), &csi.ControllerModifyVolumeRequest{
			VolumeId: "v", MutableParameters: map[string]string{"armed": value},
		})
		rig.WantCode(t, err, want)
	}
	_, scrape := c.get("/metrics")
	page.CompareRecording(t, "nodetest/testdata/controller.prom", scrape, nil)
	c.terminates()
}
