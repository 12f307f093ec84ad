// Package kubelet is a stand-in for the kubelet: it takes a node plugin's
// registration through the real protocol and then stages, publishes, unpublishes
// and unstages as the kubelet of Kubernetes 1.37 does, with its paths, its pod
// information and its access modes.
//
// It must never be kinder to a plugin than the kubelet is: it makes only the
// parent of a target, and sends only what the kubelet sends.
package kubelet

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// pollEvery is how often a waited-for socket is looked for.
const pollEvery = 20 * time.Millisecond

// Kubelet is one node's kubelet with one registered plugin.
type Kubelet struct {
	Root   string // the kubelet directory, absolute
	driver string
	conn   *grpc.ClientConn
	rpcs   []csi.NodeServiceCapability_RPC_Type
}

// Register waits until driver offers registration below root, takes it as the
// kubelet does, tells the plugin so and connects to the endpoint it named. ctx
// bounds all of it.
func Register(ctx context.Context, root, driver string) (*Kubelet, error) {
	info, notify, err := askPlugin(ctx, filepath.Join(root, "plugins_registry", driver+"-reg.sock"))
	if err != nil {
		return nil, err
	}
	k := &Kubelet{Root: root, driver: driver}
	if err := k.accept(ctx, info); err != nil {
		return nil, errors.Join(err, notify(ctx, &registration.RegistrationStatus{Error: err.Error()}))
	}
	return k, notify(ctx, &registration.RegistrationStatus{PluginRegistered: true})
}

type notifier func(context.Context, *registration.RegistrationStatus) error

func askPlugin(ctx context.Context, socket string) (*registration.PluginInfo, notifier, error) {
	if err := awaitSocket(ctx, socket); err != nil {
		return nil, nil, err
	}
	conn, err := dial(socket)
	if err != nil {
		return nil, nil, err
	}
	client := registration.NewRegistrationClient(conn)
	// A socket file is there a moment before somebody listens on it.
	info, err := client.GetInfo(ctx, &registration.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("ask the plugin for its info: %w", err), conn.Close())
	}
	return info, func(ctx context.Context, status *registration.RegistrationStatus) error {
		_, err := client.NotifyRegistrationStatus(ctx, status)
		return errors.Join(err, conn.Close())
	}, nil
}

// accept checks the plugin's info as the kubelet's CSI handler does and connects.
func (k *Kubelet) accept(ctx context.Context, info *registration.PluginInfo) error {
	switch {
	case info.GetType() != registration.CSIPlugin:
		return fmt.Errorf("plugin type %q is not %q", info.GetType(), registration.CSIPlugin)
	case info.GetName() != k.driver:
		return fmt.Errorf("plugin name %q is not %q", info.GetName(), k.driver)
	case !slices.Contains(info.GetSupportedVersions(), "1.0.0"):
		return fmt.Errorf("plugin versions %q do not hold 1.0.0", info.GetSupportedVersions())
	}
	conn, err := dial(info.GetEndpoint())
	if err != nil {
		return err
	}
	k.conn = conn
	if _, err := k.Node().NodeGetInfo(ctx, &csi.NodeGetInfoRequest{}); err != nil {
		return fmt.Errorf("ask the plugin for its node: %w", err)
	}
	capabilities, err := k.Node().NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err != nil {
		return fmt.Errorf("ask the plugin for its capabilities: %w", err)
	}
	for _, c := range capabilities.GetCapabilities() {
		k.rpcs = append(k.rpcs, c.GetRpc().GetType())
	}
	return nil
}

// Node is the plugin's Node service, for calls the kubelet would not make.
func (k *Kubelet) Node() csi.NodeClient { return csi.NewNodeClient(k.conn) }

// Close drops the connection.
func (k *Kubelet) Close() error { return k.conn.Close() }

// Target is where the kubelet wants a pod's volume.
func (k *Kubelet) Target(podUID, pvName string) string {
	return filepath.Join(k.Root, "pods", podUID, "volumes", "kubernetes.io~csi", pvName, "mount")
}

// Staging is where the kubelet stages a volume for all pods of the node.
func (k *Kubelet) Staging(handle string) string {
	return filepath.Join(k.Root, "plugins", "kubernetes.io", "csi", k.driver,
		fmt.Sprintf("%x", sha256.Sum256([]byte(handle))), "globalmount")
}

func (k *Kubelet) can(rpc csi.NodeServiceCapability_RPC_Type) bool {
	return slices.Contains(k.rpcs, rpc)
}

func dial(socket string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to %q: %w", socket, err)
	}
	return conn, nil
}

func awaitSocket(ctx context.Context, path string) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no plugin offered registration on %q: %w", path, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}
