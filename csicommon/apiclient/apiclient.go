// Package apiclient makes the one client a driver talks to the API server with.
//
// It is a plain REST client for core/v1 in JSON. Callers decode answers into
// structs of their own that name the few fields they need: the typed clientset
// and the core/v1 types would cost a node plugin more resident memory than all
// of its volumes.
//
// The package must never know an object: what is read and what is written is
// said by the packages that use the client.
package apiclient

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// queriesPerSecond and burst replace client-go's 5 and 10, with which the
	// two requests each of 100 followed volumes would take 40 s at start. The
	// API server's own priority and fairness is what protects it.
	queriesPerSecond = 50
	burst            = 300
)

// New makes the client: from the file kubeconfig, or from the pod's service
// account when kubeconfig is empty. It asks the API server nothing.
func New(kubeconfig string) (rest.Interface, error) {
	config, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	return ForConfig(config)
}

// ForConfig makes the client from config, which it does not change. Requests
// have no time limit of the client's own, because a watch is one: the caller's
// context bounds each.
func ForConfig(config *rest.Config) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	version := schema.GroupVersion{Version: "v1"}
	// The scheme knows metav1.Status and nothing else: that is what turns the
	// answer of a refused request into an error apierrors can tell apart.
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, version)
	config.APIPath = "/api"
	config.GroupVersion = &version
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeJSON
	config.QPS = queriesPerSecond
	config.Burst = burst
	config.Timeout = 0
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make the API client for %q: %w", config.Host, err)
	}
	return client, nil
}

// Body returns the body of an answer, or the error that the API server sent in
// its place. Result.Raw alone keeps only the code of such an error: a refusal
// would not say why, and a 404 not whether it was the API server's.
func Body(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// IsAbsence tells the API server's word that there is no such object from the 404 page of
// a proxy, or of a server that has no such path, which says nothing about the object.
func IsAbsence(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

func load(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("read the kubeconfig file %q: %w", kubeconfig, err)
		}
		return config, nil
	}
	config, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, fmt.Errorf("find the API server: no kubeconfig file is named and this is no pod with a service account: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the pod's service account: %w", err)
	}
	return config, nil
}
