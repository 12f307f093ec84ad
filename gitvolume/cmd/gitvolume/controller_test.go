package main

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// controllerProcess is a controller that runs.
type controllerProcess struct {
	*running
	socket string
}

// startsController starts one without a webhook, with ports of the kernel's choice.
func (h *home) startsController(more ...string) *controllerProcess {
	h.t.Helper()
	c := &controllerProcess{socket: h.runtime + "/csi.sock"}
	c.running = h.start(append([]string{"controller", "--endpoint", "unix://" + c.socket, "--http", "127.0.0.1:0", "--webhook", ""}, more...)...)
	c.AwaitLog("msg=starting")
	return c
}

// address is the one that the log names, of http or webhook.
func (c *controllerProcess) address(of string) string {
	c.t.Helper()
	match := regexp.MustCompile(of + `=(127\.0\.0\.1:[0-9]+)`).FindStringSubmatch(c.Log.String())
	if match == nil {
		c.t.Fatalf("the log names no %s: %s", of, c.Log.String())
	}
	return "http://" + match[1]
}

// get asks an HTTP path.
func (c *controllerProcess) get(path string) (int, string) {
	c.t.Helper()
	response, err := http.Get(c.address("http") + path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// terminates ends it as a cluster does.
func (c *controllerProcess) terminates() {
	c.t.Helper()
	c.Stop()
	if _, err := os.Lstat(c.socket); err == nil {
		c.t.Error("its socket is still there")
	}
}

func TestController(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	c := h.startsController()
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, body := c.get(path); code != http.StatusOK {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	conn, err := grpc.NewClient("unix://"+c.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	info, err := csi.NewIdentityClient(conn).GetPluginInfo(t.Context(), &csi.GetPluginInfoRequest{})
	if err != nil || info.GetName() != "git.liken.sh" {
		t.Errorf("it is %v, %v", info, err)
	}
	_, err = csi.NewControllerClient(conn).ControllerModifyVolume(t.Context(), &csi.ControllerModifyVolumeRequest{
		VolumeId: "v", MutableParameters: map[string]string{"armed": "true"},
	})
	if err != nil {
		t.Error(err)
	}
	if _, scrape := c.get("/metrics"); !strings.Contains(scrape, "/csi.v1.Controller/ControllerModifyVolume") {
		t.Errorf("the call is not counted: %s", scrape)
	} else if !regexp.MustCompile(`git_csi_build_info\{[^}]*component="controller"[^}]*\} 1`).MatchString(scrape) {
		t.Errorf("it does not tell which part it is: %s", scrape)
	}
	c.terminates()
}

func TestControllerRefusals(t *testing.T) {
	for name, row := range map[string]struct {
		flags string
		want  []string
	}{
		"an unknown flag":         {"--node-id n", []string{": --node-id; ", "gitvolume controller --help"}},
		"a stray word":            {"serve", []string{`"serve"`, "takes flags only"}},
		"a relative socket":       {"--webhook= --endpoint csi.sock", []string{"--endpoint", "absolute path"}},
		"an address that is none": {"--webhook= --http here", []string{"--http", `"here"`}},
		"no cluster":              {"", []string{"--kubeconfig", "--webhook"}},
		"no such cluster":         {"--kubeconfig /nonexistent/file", []string{"--kubeconfig", `"/nonexistent/file"`}},
		"nothing to serve":        {"--webhook= --endpoint=", []string{"--endpoint", "--webhook", "nothing to serve"}},
		"a cluster for nothing":   {"--webhook= --kubeconfig file", []string{"--kubeconfig", "empty --webhook"}},
		"a level that is none":    {"--log-level loud", []string{"--log-level", `"loud"`}},
		"a collector's path":      {"--otlp-endpoint collector", []string{"--otlp-endpoint", `"collector"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.start(append([]string{"controller", "--endpoint", "unix://" + h.runtime + "/csi.sock"}, strings.Fields(row.flags)...)...).refused(row.want...)
			if _, err := os.Lstat(h.runtime + "/csi.sock"); err == nil {
				t.Error("its socket is still there")
			}
		})
	}
}

func TestControllerHelpAndVersion(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for arguments, want := range map[string]string{
		"controller --help": "Usage: gitvolume controller [flags]", "controller -h": "--endpoint", "controller --version": "gitvolume ",
	} {
		p := h.start(strings.Fields(arguments)...)
		if code := p.Wait(); code != 0 || !strings.Contains(p.out.String(), want) {
			t.Errorf("%s: exit code %d, it says %q", arguments, code, p.out.String())
		}
	}
}
