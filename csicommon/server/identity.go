package server

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// identity answers csi.v1.Identity.
type identity struct {
	csi.UnimplementedIdentityServer
	config Config
}

// GetPluginInfo names the driver and its version.
func (i *identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.config.Driver, VendorVersion: i.config.Version}, nil
}

// GetPluginCapabilities lists what the driver's Config says.
func (i *identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: i.config.Capabilities}, nil
}

// Probe answers ready, or FailedPrecondition with what is wrong: that is how CSI
// tells an unhealthy plugin from one that is still starting.
func (i *identity) Probe(ctx context.Context, _ *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	if err := i.config.Ready(ctx); err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}
