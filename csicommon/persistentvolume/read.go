package persistentvolume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"liken.sh/csicommon/apiclient"
)

const resource = "persistentvolumes"

// clusterNamespace exists in every cluster as long as the cluster does, and
// cannot be deleted: its UID is the cluster's identity.
const clusterNamespace = "kube-system"

// ErrOtherCluster is wrapped when another cluster answers than the one expected.
var ErrOtherCluster = errors.New("another cluster answers")

// Read asks the API server for the PersistentVolume name. False without an
// error is the API server's own word that there is none.
func (v *View) Read(ctx context.Context, name string) (Volume, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := apiclient.Body(v.config.Client.Get().Resource(resource).Name(name).Do(ctx))
	if apiclient.IsAbsence(err) {
		return Volume{}, false, nil
	}
	if err != nil {
		return Volume{}, false, fmt.Errorf("read PersistentVolume %q: %w", name, err)
	}
	var o object
	if err := json.Unmarshal(body, &o); err != nil {
		return Volume{}, false, fmt.Errorf("decode PersistentVolume %q: %w", name, err)
	}
	if o.Kind != "PersistentVolume" || o.Metadata.Name != name {
		return Volume{}, false, fmt.Errorf("read PersistentVolume %q: the answer is %s %q", name, o.Kind, o.Metadata.Name)
	}
	return o.volume(v.config.Annotations), true, nil
}

// readNamed reads name with a list of one: unlike a GET, a list says from which
// version to watch when there is no such volume.
func (v *View) readNamed(ctx context.Context, name string) (volume Volume, present bool, version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := v.config.Client.Get().Resource(resource).Param("fieldSelector", selector(name)).Stream(ctx)
	if err != nil {
		return Volume{}, false, "", fmt.Errorf("read PersistentVolume %q: %w", name, err)
	}
	defer func() { _ = body.Close() }()
	others := ""
	page, err := decodePage(body, func(o *object) {
		if o.Metadata.Name != name {
			others = o.Metadata.Name
			return
		}
		volume, present = o.volume(v.config.Annotations), true
	})
	if err != nil {
		return Volume{}, false, "", fmt.Errorf("read PersistentVolume %q: %w", name, err)
	}
	if others != "" || page.next != "" {
		return Volume{}, false, "", fmt.Errorf("read PersistentVolume %q: the answer holds others (%q), the field selector was not applied", name, others)
	}
	return volume, present, page.version, nil
}

func selector(name string) string {
	return fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
}

// Cluster asks for the identity of the cluster that answers: the UID of its
// namespace kube-system.
func (v *View) Cluster(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := apiclient.Body(v.config.Client.Get().Resource("namespaces").Name(clusterNamespace).Do(ctx))
	if err != nil {
		return "", fmt.Errorf("read namespace %q, whose UID identifies the cluster: %w", clusterNamespace, err)
	}
	var namespace object
	if err := json.Unmarshal(body, &namespace); err != nil {
		return "", fmt.Errorf("decode namespace %q: %w", clusterNamespace, err)
	}
	if namespace.Kind != "Namespace" || namespace.Metadata.UID == "" {
		return "", fmt.Errorf("read namespace %q: the answer (kind %q) has no UID", clusterNamespace, namespace.Kind)
	}
	return namespace.Metadata.UID, nil
}
