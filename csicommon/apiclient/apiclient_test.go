package apiclient_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"liken.sh/csicommon/apiclient"
	"liken.sh/csicommon/csitest/apiserver"
)

func TestNew(t *testing.T) {
	server := apiserver.New()
	client, err := apiclient.New(server.Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}
	body, err := apiclient.Body(client.Get().Resource("namespaces").Name("kube-system").Do(t.Context()))
	if err != nil || !strings.Contains(string(body), `"uid":"cluster-1"`) {
		t.Errorf("the namespace is %s, %v", body, err)
	}
}

func TestBodyTellsTheServersErrors(t *testing.T) {
	server := apiserver.New()
	client, err := apiclient.ForConfig(server.InProcess())
	if err != nil {
		t.Fatal(err)
	}
	_, err = apiclient.Body(client.Get().Resource("persistentvolumes").Name("p1").Do(t.Context()))
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `"p1" not found`) {
		t.Errorf("of the server: %v", err)
	}
	server.Inject(apiserver.Fault{Do: apiserver.Page(404, "<html>")})
	_, err = apiclient.Body(client.Get().Resource("persistentvolumes").Name("p1").Do(t.Context()))
	if !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		t.Errorf("of a proxy: %v", err)
	}
}

func TestConfigurationsThatAreNone(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"":                    "no kubeconfig file is named",
		"/nowhere/kubeconfig": `"/nowhere/kubeconfig"`,
		broken:                broken,
	} {
		if _, err := apiclient.New(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%q) says %v, want %q in it", file, err, want)
		}
	}
	if _, err := apiclient.ForConfig(&rest.Config{Host: "http://[bad"}); err == nil {
		t.Error("a host that is none is no error")
	}
}

// 100 follows ask 200 times at start; client-go's own limit would make them wait.
func TestBurst(t *testing.T) {
	server := apiserver.New()
	client, err := apiclient.ForConfig(server.InProcess())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 200 {
		if err := client.Get().Resource("namespaces").Name("kube-system").Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("200 requests took %v", took)
	}
}
