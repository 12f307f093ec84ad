package persistentvolume_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"liken.sh/csicommon/apiclient"
	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/persistentvolume"
)

// nodeVariable names the kubeconfig file of a child process that plays a node:
// the memory of the fake API server must not be counted.
const nodeVariable = "PERSISTENTVOLUME_TEST_NODE"

const (
	followed = 100
	foreign  = 20_000
)

func TestMain(m *testing.M) {
	kubeconfig := os.Getenv(nodeVariable)
	if kubeconfig == "" {
		os.Exit(m.Run())
	}
	if err := playNode(kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// usage is what the child prints, in KiB: RSS now, and the highest RSS so far.
type usage struct {
	Connected, Following, Listed, Highest int
	Goroutines                            int
}

func playNode(kubeconfig string) error {
	client, err := apiclient.New(kubeconfig)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	view := persistentvolume.New(persistentvolume.Config{Client: client, Log: slog.New(slog.DiscardHandler)})
	go view.Run(ctx)
	if _, err := view.Cluster(ctx); err != nil {
		return err
	}
	var used usage
	used.Connected = resident("VmRSS")
	for i := range followed {
		view.Follow(fmt.Sprintf("own-%d", i))
	}
	for i := 0; i < followed; {
		if _, state := view.Get(fmt.Sprintf("own-%d", i)); state == persistentvolume.Present {
			i++
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(10 * time.Millisecond)
	}
	used.Following = resident("VmRSS")
	volumes, err := view.Confirm(ctx, "cluster-1", driver)
	if err != nil || len(volumes) != followed {
		return fmt.Errorf("confirmed %d volumes, want %d: %w", len(volumes), followed, err)
	}
	used.Listed, used.Highest = resident("VmRSS"), resident("VmHWM")
	used.Goroutines = runtime.NumGoroutine()
	return json.NewEncoder(os.Stdout).Encode(used)
}

// resident reads a line of /proc/self/status, in KiB.
func resident(key string) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kib int
		if n, _ := fmt.Sscanf(line, key+": %d kB", &kib); n == 1 {
			return kib
		}
	}
	return 0
}

// node starts the child against server and returns what it used.
func node(t *testing.T, server *apiserver.Server) usage {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), nodeVariable+"="+server.Kubeconfig(t))
	var errors bytes.Buffer
	child.Stderr = &errors
	out, err := child.Output()
	if err != nil {
		t.Fatalf("the child failed: %v\n%s", err, errors.String())
	}
	var used usage
	if err := json.Unmarshal(out, &used); err != nil {
		t.Fatalf("the child printed %q: %v", out, err)
	}
	return used
}

// Memory follows the volumes of the node, not those of the cluster.
func TestMemory(t *testing.T) {
	if raced {
		t.Skip("the race detector multiplies the memory of the process that is measured")
	}
	server := apiserver.New()
	for i := range followed {
		server.PutVolume(apiserver.Volume(fmt.Sprintf("own-%d", i), driver, fmt.Sprintf("own-%d", i)))
	}
	alone := node(t, server)
	server.AddForeignVolumes(foreign)
	crowded := node(t, server)
	t.Logf("alone %+v KiB, among %d others %+v KiB", alone, foreign, crowded)
	if alone.Connected == 0 || alone.Highest == 0 {
		t.Fatal("the resident memory could not be read")
	}
	if grown := crowded.Following - crowded.Connected; grown > 8<<10 {
		t.Errorf("following %d volumes took %d KiB, want less than 8 MiB", followed, grown)
	}
	if grown := crowded.Highest - alone.Highest; grown > 10<<10 {
		t.Errorf("%d volumes of others took %d KiB, want less than 10 MiB", foreign, grown)
	}
	// One and one of HTTP/2 each, one more while it asks, and some of the client's.
	if crowded.Goroutines > 3*followed+50 {
		t.Errorf("%d goroutines for %d volumes", crowded.Goroutines, followed)
	}
}
