package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/page"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/gitvolume/internal/published"
)

// demanding is an API server with a volume that a push can mark.
func demanding() *apiserver.Server {
	server := apiserver.New()
	server.PutSecret("shop", "forge", map[string]string{"secret": "s3cret"})
	pv := apiserver.Volume("shop-config", "git.liken.sh", "shop-config")
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
	pv.Spec.ClaimRef.Namespace = "shop"
	pv.Spec.CSI.VolumeAttributes = map[string]string{"url": "git@git.example.com:shop/config.git", "webhookSecret": "forge"}
	server.PutVolume(pv)
	return server
}

// pushes tells of a push as Gitea does, and returns the answer's code.
func (c *controllerProcess) pushes(secret string) int {
	c.t.Helper()
	const body = `{"ref":"refs/heads/main","repository":{"clone_url":"https://git.example.com/shop/config.git"}}`
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.address("webhook")+"/webhook/shop/forge", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, body)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Gitea-Event", "push")
	request.Header.Set("X-Gitea-Signature", hex.EncodeToString(mac.Sum(nil)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// startsWebhook starts a controller that serves forges alone, and waits until it has made up for
// the time before.
func (h *home) startsWebhook(server *apiserver.Server, more ...string) *controllerProcess {
	h.t.Helper()
	before := server.Annotations("shop-config")[published.DemandAnnotation]
	c := h.startsController(append([]string{"--endpoint", "", "--webhook", "127.0.0.1:0", "--kubeconfig", server.Kubeconfig(h.t)}, more...)...)
	process.Await(h.t, "it is ready and has marked the volume", func() bool {
		code, _ := c.get("/readyz")
		return code == http.StatusOK && server.Annotations("shop-config")[published.DemandAnnotation] != before
	})
	return c
}

func TestControllerWebhook(t *testing.T) {
	t.Parallel()
	server := demanding()
	c := newHome(t).startsWebhook(server)
	before := server.Annotations("shop-config")[published.DemandAnnotation]
	if code := c.pushes("wrong"); code != http.StatusUnauthorized {
		t.Errorf("a wrong signature is answered %d", code)
	}
	if after := server.Annotations("shop-config")[published.DemandAnnotation]; after != before {
		t.Errorf("a wrong signature marks: %q", after)
	}
	if code := c.pushes("s3cret"); code != http.StatusAccepted {
		t.Errorf("a push is answered %d", code)
	}
	if after := server.Annotations("shop-config")[published.DemandAnnotation]; after == before {
		t.Errorf("a push does not mark: %q", after)
	}
	c.wantMetricsOnThePage(t)
	if code, said := c.get("/healthz"); code != http.StatusOK {
		t.Errorf("its health is %d %s", code, said)
	}
	if _, scrape := c.get("/metrics"); !regexp.MustCompile(`git_csi_build_info\{[^}]*component="webhook"[^}]*\} 1`).MatchString(scrape) {
		t.Errorf("it does not tell which part it is: %s", scrape)
	}
	c.terminates()
	if said := c.Log.String(); strings.Contains(said, "s3cret") {
		t.Errorf("the log has the secret: %s", said)
	}
}

var sampleName = regexp.MustCompile(`(?m)^([a-z_]+?)(?:_bucket|_sum|_count)?[{ ]`)

// wantMetricsOnThePage wants each series that is scraped to be documented as the
// controller's, and each of those to be scraped.
func (c *controllerProcess) wantMetricsOnThePage(t *testing.T) {
	t.Helper()
	_, section, _ := strings.Cut(page.Read(t, "../../docs/reference/metrics.md"), "\n## Of the controller\n")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(section, -1) {
		documented[row[1]] = true
	}
	_, scrape := c.get("/metrics")
	exposed := map[string]bool{"csi_plugin_operations_seconds": true} // Of calls, which there are in another test.
	for _, sample := range sampleName.FindAllStringSubmatch(scrape, -1) {
		exposed[sample[1]] = true
	}
	for name := range exposed {
		if !documented[name] {
			t.Errorf("%s is exposed and has no row", name)
		}
		delete(documented, name)
	}
	for name := range documented {
		t.Errorf("%s has a row and is not exposed", name)
	}
	for _, sample := range []string{
		`git_csi_webhook_requests_total{result="accepted"} 1`, `git_csi_webhook_requests_total{result="refused"} 1`,
		`git_csi_webhook_requests_total{result="too_large"} 0`, `git_csi_webhook_requests_total{result="held"} 0`, `git_csi_webhook_marked_total 2`,
	} {
		if !strings.Contains(scrape, sample+"\n") {
			t.Errorf("the scrape lacks %s:\n%s", sample, scrape)
		}
	}
}

// The controller asks for nothing that its roles do not grant, and they grant nothing that
// it does not ask for: PersistentVolumes in the cluster, Secrets in listed namespaces only.
func TestTheRolesAreWhatTheControllerCalls(t *testing.T) {
	t.Parallel()
	type permission struct{ scope, verb, resource string }
	granted := map[permission]bool{}
	for scope, kind := range map[string]string{"cluster": "ClusterRole", "namespace": "Role"} {
		for _, rule := range page.RoleOf(t, controlPage, kind).Rules {
			if !slices.Equal(rule.APIGroups, []string{""}) || len(rule.NonResourceURLs)+len(rule.ResourceNames) > 0 {
				t.Errorf("the rule %+v is not of the core group alone", rule)
			}
			for _, verb := range rule.Verbs {
				for _, resource := range rule.Resources {
					granted[permission{scope, verb, resource}] = false
				}
			}
		}
	}
	server := demanding()
	c := newHome(t).startsWebhook(server)
	process.Await(t, "a watch", func() bool { return server.Count("watch", "persistentvolumes") > 0 })
	if code := c.pushes("s3cret"); code != http.StatusAccepted {
		t.Errorf("a push is answered %d", code)
	}
	c.terminates()
	for _, request := range server.Requests() {
		p := permission{"cluster", request.Verb, request.Resource}
		if request.Namespace != "" {
			p.scope = "namespace"
		}
		if _, is := granted[p]; !is {
			t.Errorf("the controller makes a request that is not granted: %+v", request)
			continue
		}
		granted[p] = true
	}
	for p, isUsed := range granted {
		if !isUsed {
			t.Errorf("granted and never used: %+v", p)
		}
	}
}

// A delivery that was lost while no controller ran is made up for by the next one.
func TestARestartOfTheControllerMarks(t *testing.T) {
	t.Parallel()
	server, h := demanding(), newHome(t)
	for range 2 {
		h.startsWebhook(server).terminates()
	}
	if marks := server.Count("patch", "persistentvolumes"); marks != 2 {
		t.Errorf("two starts have marked %d times", marks)
	}
}
