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

// These name the kubeconfig file of a child process that plays a node, or a controller:
// the memory of the fake API server must not be counted.
const (
	nodeVariable       = "PERSISTENTVOLUME_TEST_NODE"
	controllerVariable = "PERSISTENTVOLUME_TEST_CONTROLLER"
)

const (
	followed = 100
	foreign  = 20_000
)

func TestMain(m *testing.M) {
	for variable, play := range map[string]func(kubeconfig string) error{nodeVariable: playNode, controllerVariable: playController} {
		kubeconfig := os.Getenv(variable)
		if kubeconfig == "" {
			continue
		}
		if err := play(kubeconfig); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
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

// playController follows all volumes of the driver.
func playController(kubeconfig string) error {
	client, err := apiclient.New(kubeconfig)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	view := persistentvolume.New(persistentvolume.Config{Client: client, Log: slog.New(slog.DiscardHandler)})
	if _, err := view.Cluster(ctx); err != nil {
		return err
	}
	var used usage
	used.Connected = resident("VmRSS")
	kept, current := 0, make(chan int, 1)
	catalogue := persistentvolume.NewCatalogue(persistentvolume.CatalogueConfig[string]{
		Client: client, Log: slog.New(slog.DiscardHandler), Driver: driver,
		Keep:    func(v persistentvolume.Volume) (string, bool) { return v.Handle, true },
		Changed: func(string, string, bool) { kept++ },
		Current: func() { current <- kept },
	})
	go catalogue.Run(ctx)
	if n := <-current; n != followed {
		return fmt.Errorf("%d volumes are kept, want %d", n, followed)
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

// child starts one of that variable against server and returns what it used.
func child(t *testing.T, variable string, server *apiserver.Server) usage {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), variable+"="+server.Kubeconfig(t))
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

// aloneAndCrowded are what a child uses without the volumes of others, and with.
func aloneAndCrowded(t *testing.T, variable string) (alone, crowded usage) {
	t.Helper()
	if raced {
		t.Skip("the race detector multiplies the memory of the process that is measured")
	}
	server := apiserver.New()
	for i := range followed {
		server.PutVolume(apiserver.Volume(fmt.Sprintf("own-%d", i), driver, fmt.Sprintf("own-%d", i)))
	}
	alone = child(t, variable, server)
	server.AddForeignVolumes(foreign)
	crowded = child(t, variable, server)
	t.Logf("alone %+v KiB, among %d others %+v KiB", alone, foreign, crowded)
	if alone.Connected == 0 || alone.Highest == 0 {
		t.Fatal("the resident memory could not be read")
	}
	if grown := crowded.Highest - alone.Highest; grown > 10<<10 {
		t.Errorf("%d volumes of others took %d KiB, want less than 10 MiB", foreign, grown)
	}
	return alone, crowded
}

// Memory follows the volumes of the node, not those of the cluster.
func TestMemory(t *testing.T) {
	_, crowded := aloneAndCrowded(t, nodeVariable)
	if grown := crowded.Following - crowded.Connected; grown > 8<<10 {
		t.Errorf("following %d volumes took %d KiB, want less than 8 MiB", followed, grown)
	}
	// One and one of HTTP/2 each, one more while it asks, and some of the client's.
	if crowded.Goroutines > 3*followed+50 {
		t.Errorf("%d goroutines for %d volumes", crowded.Goroutines, followed)
	}
}

// And a controller's those of its driver, at the cost of a single watch.
func TestMemoryOfACatalogue(t *testing.T) {
	_, crowded := aloneAndCrowded(t, controllerVariable)
	if crowded.Goroutines > 50 {
		t.Errorf("%d goroutines", crowded.Goroutines)
	}
}
