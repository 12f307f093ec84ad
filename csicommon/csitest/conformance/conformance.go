// Package conformance runs csi-sanity, the published conformance suite of CSI,
// against a node plugin's socket from within go test.
//
// csi-sanity makes its volumes with CreateVolume, which a node plugin for
// volumes written by people does not serve; so a controller stands beside it
// that answers with a handle and makes nothing. It must never be linked into a
// driver, and never touch the plugin's store.
package conformance

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Config is what the suite needs to know of a plugin.
type Config struct {
	Socket string // the plugin's CSI socket
	// Targets is an existing directory on a shared mount, where the suite has
	// its targets and staging paths.
	Targets string
	// Attributes are put on each volume as its volume context.
	Attributes map[string]string
}

// Run runs the whole suite; a failing case fails t. Ginkgo allows one run a test
// binary.
func Run(t *testing.T, config Config) {
	t.Helper()
	controller := filepath.Join(t.TempDir(), "controller.sock")
	listener, err := net.Listen("unix", controller)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterControllerServer(server, &standInController{attributes: config.Attributes})
	go func() { _ = server.Serve(listener) }() // ends with Stop, whose error says only that
	t.Cleanup(server.Stop)

	suite := sanity.NewTestConfig()
	suite.Address = "unix://" + config.Socket
	suite.ControllerAddress = "unix://" + controller
	suite.TargetPath = filepath.Join(config.Targets, "sanity-targets")
	suite.StagingPath = filepath.Join(config.Targets, "sanity-staging")
	sanity.Test(t, suite)
}

// standInController answers CreateVolume with a handle made from the name, so
// that the same name is the same volume.
type standInController struct {
	csi.UnimplementedControllerServer
	attributes map[string]string
}

func (c *standInController) CreateVolume(_ context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if request.GetName() == "" || len(request.GetVolumeCapabilities()) == 0 {
		return nil, status.Error(codes.InvalidArgument, "a name and capabilities are required")
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId:      fmt.Sprintf("sanity-%x", sha256.Sum224([]byte(request.GetName()))),
		VolumeContext: c.attributes,
	}}, nil
}

func (c *standInController) DeleteVolume(context.Context, *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	return &csi.DeleteVolumeResponse{}, nil
}
