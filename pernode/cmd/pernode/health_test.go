package main

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"liken.sh/csicommon/csitest/process"
)

func TestReadyWhenRegistered(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.StartUnregistered(n.Command())
	n.Plugin.AwaitLog("offering registration to the kubelet")
	n.wantAnswer("/readyz", http.StatusServiceUnavailable, "the kubelet has not registered the plugin yet")
	n.wantAnswer("/healthz", http.StatusOK, "ok")
	n.Register()
	n.wantAnswer("/readyz", http.StatusOK, "ok")

	// A tool that tidies the kubelet's directories took the socket away.
	if err := os.Remove(n.RegistrationSocket()); err != nil {
		t.Fatal(err)
	}
	const offering = "offering registration to the kubelet"
	process.Await(t, "the registration socket to be made again", func() bool { return strings.Count(n.Plugin.Log.String(), offering) == 2 })
	n.Register()
	n.wantAnswer("/readyz", http.StatusOK, "ok")
	n.mustPublish("h1", 1)
}

// Without a kubelet around, a standalone plugin is ready all the same.
func TestStandaloneIsReady(t *testing.T) {
	t.Parallel()
	n := newStandaloneNode(t)
	n.StartUnregistered(n.Command())
	n.Plugin.AwaitLog("offering registration to the kubelet")
	n.wantAnswer("/readyz", http.StatusOK, "ok")
	n.refuse("no")
	n.wantAnswer("/readyz", http.StatusServiceUnavailable, "refused the plugin: no")
}

func TestRefusedRegistration(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.StartUnregistered(n.Command())
	n.Plugin.AwaitLog("offering registration to the kubelet")
	n.refuse("driver name taken")
	n.wantAnswer("/readyz", http.StatusServiceUnavailable, "the kubelet refused the plugin: driver name taken")
	n.Plugin.AwaitLog("driver name taken")
	n.Register()
	n.wantAnswer("/readyz", http.StatusOK, "ok")
}

// A store that is no longer what was opened makes the plugin unready.
func TestStoreTakenAway(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.Start()
	if err := os.Rename(n.Store, n.Store+".away"); err != nil {
		t.Fatal(err)
	}
	n.wantAnswer("/healthz", http.StatusServiceUnavailable, "store cannot be used")
	n.wantAnswer("/readyz", http.StatusServiceUnavailable, "store cannot be used")
	if err := os.Rename(n.Store+".away", n.Store); err != nil {
		t.Fatal(err)
	}
	n.wantAnswer("/healthz", http.StatusOK, "ok")
}

func (n *node) wantAnswer(path string, wantCode int, words string) {
	n.T.Helper()
	code, body := n.Get(path)
	if code != wantCode {
		n.T.Errorf("%s answers %d %q, want %d", path, code, body, wantCode)
	}
	wantWords(n.T, body, words)
}

// refuse is what a kubelet says that does not want the plugin.
func (n *node) refuse(why string) {
	n.T.Helper()
	conn, err := grpc.NewClient("unix://"+n.RegistrationSocket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		n.T.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	client := registration.NewRegistrationClient(conn)
	if _, err := client.NotifyRegistrationStatus(ctx, &registration.RegistrationStatus{Error: why}); err != nil {
		n.T.Fatal(err)
	}
}
