// Package conformance runs csi-sanity, the published conformance suite of CSI,
// against a plugin's socket from within go test.
//
// csi-sanity makes its volumes with CreateVolume, which a node plugin for
// volumes written by people does not serve; so a controller stands beside it
// that answers with a handle and makes nothing. It must never be linked into a
// driver, and never touch the plugin's store.
package conformance

import (
	"flag"
	"net"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"google.golang.org/grpc"
)

// Config is what the suite needs to know of a plugin.
type Config struct {
	Socket string // the plugin's CSI socket
	// Targets is an existing directory on a shared mount, where the suite has
	// its targets and staging paths.
	Targets string
	// Attributes are put on each volume as its volume context.
	Attributes map[string]string
	// AccessMode, if not UNKNOWN, is asked for where the suite asks for
	// SINGLE_NODE_WRITER, its mode for whatever does not depend on one, and which a
	// plugin need not serve. ReadOnly has each publish be for a pod that only reads.
	AccessMode csi.VolumeCapability_AccessMode_Mode
	ReadOnly   bool
	// Skip is an expression for the names of cases about what the plugin does not serve.
	Skip string
}

// Run runs the whole suite; a failing case fails t. Ginkgo allows one run a test
// binary, and neither -parallel nor -count.
func Run(t *testing.T, config Config) {
	t.Helper()
	refuseFlags(t)
	socket := filepath.Join(t.TempDir(), "controller.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, identity{})
	csi.RegisterControllerServer(server, &controller{attributes: config.Attributes})
	go func() { _ = server.Serve(listener) }() // ends with Stop, whose error says only that
	t.Cleanup(server.Stop)

	suite := sanity.NewTestConfig()
	suite.Address = "unix://" + config.Socket
	suite.ControllerAddress = "unix://" + socket
	suite.TargetPath = filepath.Join(config.Targets, "sanity-targets")
	suite.StagingPath = filepath.Join(config.Targets, "sanity-staging")
	suite.DialOptions = append(suite.DialOptions, grpc.WithUnaryInterceptor(config.adapt))
	test(t, suite, config.Skip)
}

// RunController runs the suite against a plugin that has the Controller service on its
// socket, and of the Node service no more than what is asked of every plugin. Skip is as in
// Config. What is said of Run holds.
func RunController(t *testing.T, socket, skip string) {
	t.Helper()
	refuseFlags(t)
	suite := sanity.NewTestConfig()
	suite.Address = "unix://" + socket
	suite.TargetPath = filepath.Join(t.TempDir(), "sanity-targets")
	suite.StagingPath = filepath.Join(t.TempDir(), "sanity-staging")
	test(t, suite, skip)
}

func test(t *testing.T, suite sanity.TestConfig, skip string) {
	t.Helper()
	if skip != "" {
		if err := flag.Set("ginkgo.skip", skip); err != nil {
			t.Fatal(err)
		}
	}
	sanity.Test(t, suite)
}

// refuseFlags fails t where Ginkgo would end the process, and with it the tests
// that have nothing to do with it.
func refuseFlags(t *testing.T) {
	t.Helper()
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "test.parallel" || f.Name == "test.count" && f.Value.String() != "1" {
			t.Fatalf("csi-sanity cannot run with -%s=%s: leave the flag out, or this test with -skip", f.Name, f.Value)
		}
	})
}
