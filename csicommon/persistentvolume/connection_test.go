package persistentvolume_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"liken.sh/csicommon/apiclient"
	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/persistentvolume"
)

// One life over HTTPS and HTTP/2, as against a real API server; the other tests
// of the package call the server in the process.
func TestRealConnection(t *testing.T) {
	server := apiserver.New()
	client, err := apiclient.New(server.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	view := persistentvolume.New(persistentvolume.Config{Client: client, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); view.Run(ctx) }()
	reaches := func(want persistentvolume.State) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			_, state := view.Get("p1")
			if state == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("p1 is %v, want %v", state, want)
			}
		}
	}
	view.Follow("p1")
	reaches(persistentvolume.Absent)
	server.PutVolume(apiserver.Volume("p1", driver, "h1"))
	reaches(persistentvolume.Present)
	server.DeleteVolume("p1")
	reaches(persistentvolume.Absent)
	server.DropWatches()
	server.PutVolume(apiserver.Volume("p1", driver, "h1"))
	reaches(persistentvolume.Present)

	server.AddForeignVolumes(600)
	for _, action := range []apiserver.Action{apiserver.Truncate(), apiserver.Cut()} {
		server.Inject(apiserver.Fault{Verb: "list", Page: 2, Times: 1, Do: action})
		if volumes, err := view.List(ctx, driver); err == nil {
			t.Errorf("a broken second page gives %v", fmt.Sprint(volumes))
		}
	}
	if volumes, err := view.List(ctx, driver); err != nil || len(volumes) != 1 {
		t.Errorf("the list is %v, %v", volumes, err)
	}
	cancel()
	<-ended
}
