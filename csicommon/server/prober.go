package server

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// ErrNotReady is wrapped when a plugin answers that it is not ready.
var ErrNotReady = errors.New("the plugin is not ready")

// Probe asks the plugin on a CSI socket whether it is ready, the way the kubelet
// would. It dials anew each time: a connection that is kept would still answer
// after the socket file is gone, when nobody else can reach the plugin any more.
func Probe(ctx context.Context, socketPath string) (err error) {
	// The path is no part of the target: gRPC reads a target as a URL, and would
	// look for another file where the path has a % or a #.
	conn, err := grpc.NewClient("passthrough:///localhost",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socketPath)
		}))
	if err != nil {
		return fmt.Errorf("make a client of %q: %w", socketPath, err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	response, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{})
	if err != nil {
		return fmt.Errorf("probe through the CSI socket: %w", err)
	}
	if response.GetReady() != nil && !response.GetReady().GetValue() {
		return fmt.Errorf("probe through the CSI socket: %w", ErrNotReady)
	}
	return nil
}
