// Package manifest reads manifests into the API's types, strictly: what Kubernetes
// would drop in silence is an error. For the tests of what users are given, which
// must never accept a kind that nobody taught this package.
package manifest

import (
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Decode reads one document. A field that its kind has not, or one given twice, is
// an error.
func Decode(document []byte) (metav1.Object, error) {
	var head metav1.TypeMeta
	if err := yaml.Unmarshal(document, &head); err != nil {
		return nil, fmt.Errorf("%w in\n%s", err, document)
	}
	object := empty(head)
	if object == nil {
		return nil, fmt.Errorf("%q %q is no kind that is known here, in\n%s", head.APIVersion, head.Kind, document)
	}
	if err := yaml.UnmarshalStrict(document, object); err != nil {
		return nil, fmt.Errorf("%s: %w", head.Kind, err)
	}
	return object, nil
}

// empty is an object of that kind, nil for one that is not known here.
func empty(kind metav1.TypeMeta) metav1.Object {
	switch kind.APIVersion + " " + kind.Kind {
	case "v1 ConfigMap":
		return &corev1.ConfigMap{}
	case "v1 Namespace":
		return &corev1.Namespace{}
	case "v1 PersistentVolume":
		return &corev1.PersistentVolume{}
	case "v1 PersistentVolumeClaim":
		return &corev1.PersistentVolumeClaim{}
	case "v1 Pod":
		return &corev1.Pod{}
	case "v1 Secret":
		return &corev1.Secret{}
	case "v1 Service":
		return &corev1.Service{}
	case "v1 ServiceAccount":
		return &corev1.ServiceAccount{}
	case "apps/v1 DaemonSet":
		return &appsv1.DaemonSet{}
	case "apps/v1 Deployment":
		return &appsv1.Deployment{}
	case "apps/v1 StatefulSet":
		return &appsv1.StatefulSet{}
	case "monitoring.coreos.com/v1 PodMonitor":
		return &monitoringv1.PodMonitor{}
	case "monitoring.coreos.com/v1 PrometheusRule":
		return &monitoringv1.PrometheusRule{}
	case "batch/v1 Job":
		return &batchv1.Job{}
	case "gateway.networking.k8s.io/v1 HTTPRoute":
		return &HTTPRoute{}
	case "networking.k8s.io/v1 Ingress":
		return &networkingv1.Ingress{}
	case "networking.k8s.io/v1 NetworkPolicy":
		return &networkingv1.NetworkPolicy{}
	case "policy/v1 PodDisruptionBudget":
		return &policyv1.PodDisruptionBudget{}
	case "rbac.authorization.k8s.io/v1 ClusterRole":
		return &rbacv1.ClusterRole{}
	case "rbac.authorization.k8s.io/v1 ClusterRoleBinding":
		return &rbacv1.ClusterRoleBinding{}
	case "rbac.authorization.k8s.io/v1 Role":
		return &rbacv1.Role{}
	case "rbac.authorization.k8s.io/v1 RoleBinding":
		return &rbacv1.RoleBinding{}
	case "storage.k8s.io/v1 CSIDriver":
		return &storagev1.CSIDriver{}
	case "storage.k8s.io/v1 StorageClass":
		return &storagev1.StorageClass{}
	case "storage.k8s.io/v1 VolumeAttributesClass":
		return &storagev1.VolumeAttributesClass{}
	}
	return nil
}
