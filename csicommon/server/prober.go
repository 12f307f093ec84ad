package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Prober asks a CSI socket the way the kubelet would, so that a health check
// fails when the socket itself is gone or stuck, not only when the process is.
type Prober struct{ conn *grpc.ClientConn }

// NewProber dials lazily: the socket need not exist yet.
func NewProber(socketPath string) (*Prober, error) {
	conn, err := grpc.NewClient("unix://"+socketPath, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("make a client of %q: %w", socketPath, err)
	}
	return &Prober{conn: conn}, nil
}

// Probe returns nil when the plugin answers that it is ready.
func (p *Prober) Probe(ctx context.Context) error {
	response, err := csi.NewIdentityClient(p.conn).Probe(ctx, &csi.ProbeRequest{})
	if err != nil {
		return fmt.Errorf("probe through the CSI socket: %w", err)
	}
	if response.GetReady() != nil && !response.GetReady().GetValue() {
		return errors.New("probe through the CSI socket: the plugin is not ready")
	}
	return nil
}

// Close ends the connection.
func (p *Prober) Close() error { return p.conn.Close() }
