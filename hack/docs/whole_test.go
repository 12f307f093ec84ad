package docs

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liken.sh/hack/manifest"
)

// missing says what else a page's objects need to work as they were pasted.
func missing(page []metav1.Object) []string {
	has := make(map[string]bool)
	for _, o := range page {
		has[titleOf(o)] = true
		for _, made := range makes(o) {
			has[made] = true
		}
	}
	var wrong []string
	for _, o := range page {
		for _, need := range needs(o) {
			if !has[need] {
				wrong = append(wrong, fmt.Sprintf("%s needs %s, which is not on the page", titleOf(o), need))
			}
		}
		if selector := selectorOf(o); selector != nil && !selects(selector, page) {
			wrong = append(wrong, fmt.Sprintf("%s selects no pod of the page", titleOf(o)))
		}
	}
	return wrong
}

// volumeFor is what a claim needs: the PersistentVolume that names it, of the same
// class and access modes, without which Kubernetes would not bind the two.
func volumeFor(namespace, name string, class *string, modes []corev1.PersistentVolumeAccessMode) string {
	if class == nil {
		class = new(string)
	}
	return fmt.Sprintf("a PersistentVolume of class %q with access modes %v for claim %s/%s", *class, modes, namespace, name)
}

// makes lists what an object brings beside itself.
func makes(o metav1.Object) []string {
	var made []string
	switch o := o.(type) {
	case *corev1.PersistentVolume:
		if claim := o.Spec.ClaimRef; claim != nil {
			made = append(made, volumeFor(claim.Namespace, claim.Name, &o.Spec.StorageClassName, o.Spec.AccessModes))
		}
	case *appsv1.StatefulSet:
		for _, claim := range claimsOf(o) {
			made = append(made, titleOf(&claim))
		}
	}
	return made
}

// needs lists what has to be there for an object to work.
func needs(o metav1.Object) []string {
	var all []string
	switch o.GetNamespace() {
	case "", "default", "kube-system":
	default:
		all = append(all, title("Namespace", "", o.GetNamespace()))
	}
	switch o := o.(type) {
	case *corev1.PersistentVolume:
		if claim := o.Spec.ClaimRef; claim != nil {
			all = append(all, title("PersistentVolumeClaim", claim.Namespace, claim.Name))
		}
	case *corev1.PersistentVolumeClaim:
		all = append(all, volumeOf(o))
	case *appsv1.StatefulSet:
		all = append(all, title("Service", o.Namespace, o.Spec.ServiceName))
		for _, claim := range claimsOf(o) {
			all = append(all, volumeOf(&claim))
		}
	}
	if pod := podOf(o); pod != nil {
		for _, volume := range pod.Spec.Volumes {
			if claim := volume.PersistentVolumeClaim; claim != nil {
				all = append(all, title("PersistentVolumeClaim", o.GetNamespace(), claim.ClaimName))
			}
		}
		if account := pod.Spec.ServiceAccountName; account != "" {
			all = append(all, title("ServiceAccount", o.GetNamespace(), account))
		}
	}
	return all
}

func volumeOf(claim *corev1.PersistentVolumeClaim) string {
	return volumeFor(claim.Namespace, claim.Name, claim.Spec.StorageClassName, claim.Spec.AccessModes)
}

// claimsOf are those that a StatefulSet makes, one of each template a replica.
func claimsOf(set *appsv1.StatefulSet) []corev1.PersistentVolumeClaim {
	replicas := 1
	if set.Spec.Replicas != nil {
		replicas = int(*set.Spec.Replicas)
	}
	var claims []corev1.PersistentVolumeClaim
	for _, template := range set.Spec.VolumeClaimTemplates {
		for ordinal := range replicas {
			claim := template
			claim.Namespace = set.Namespace
			claim.Name = fmt.Sprintf("%s-%s-%d", template.Name, set.Name, ordinal)
			claims = append(claims, claim)
		}
	}
	return claims
}

// podOf is the pod that an object is or makes, nil for one that makes none.
func podOf(o metav1.Object) *corev1.PodTemplateSpec {
	switch o := o.(type) {
	case *corev1.Pod:
		return &corev1.PodTemplateSpec{ObjectMeta: o.ObjectMeta, Spec: o.Spec}
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	}
	return nil
}

func selectorOf(o metav1.Object) map[string]string {
	switch o := o.(type) {
	case *corev1.Service:
		return o.Spec.Selector
	case *policyv1.PodDisruptionBudget:
		return o.Spec.Selector.MatchLabels
	case *appsv1.DaemonSet:
		return o.Spec.Selector.MatchLabels
	case *appsv1.Deployment:
		return o.Spec.Selector.MatchLabels
	case *appsv1.StatefulSet:
		return o.Spec.Selector.MatchLabels
	}
	return nil
}

func selects(selector map[string]string, page []metav1.Object) bool {
	return slices.ContainsFunc(page, func(o metav1.Object) bool {
		pod := podOf(o)
		if pod == nil {
			return false
		}
		labels := maps.Clone(pod.Labels)
		maps.DeleteFunc(labels, func(key, value string) bool { return selector[key] != value })
		return len(labels) == len(selector)
	})
}

func TestMissing(t *testing.T) {
	const (
		namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
		pv        = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\nspec: {storageClassName: c, accessModes: [ReadWriteMany], claimRef: {namespace: shop, name: data-db-0}}\n"
		pvc       = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data-db-0, namespace: shop}\nspec: {storageClassName: c, accessModes: [ReadWriteMany]}\n"
		otherMode = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data-db-0, namespace: shop}\nspec: {storageClassName: c, accessModes: [ReadWriteOnce]}\n"
		pod       = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: shop}\nspec: {volumes: [{name: d, persistentVolumeClaim: {claimName: data-db-0}}]}\n"
		service   = "apiVersion: v1\nkind: Service\nmetadata: {name: db, namespace: shop}\nspec: {selector: {app: db}}\n"
		set       = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db, namespace: shop}\nspec: {serviceName: db, replicas: 1, selector: {matchLabels: {app: db}}, " +
			"template: {metadata: {labels: {app: db}}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: c, accessModes: [ReadWriteMany]}}]}\n"
	)
	for name, row := range map[string]struct {
		manifests []string
		missing   int
	}{
		"a pod, its claim and its volume": {[]string{namespace, pv, pvc, pod}, 0},
		"no namespace":                    {[]string{pv, pvc, pod}, 2},
		"a pod without its claim":         {[]string{namespace, pod}, 1},
		"a claim without its volume":      {[]string{namespace, pvc}, 1},
		"a claim of another access mode":  {[]string{namespace, pv, otherMode}, 1},
		"a volume without its claim":      {[]string{pv}, 1},
		"a whole StatefulSet":             {[]string{namespace, pv, service, set}, 0},
		"a StatefulSet without volumes":   {[]string{namespace, service, set}, 1},
		"a StatefulSet without a service": {[]string{namespace, pv, set}, 1},
		"a service that selects nothing":  {[]string{namespace, service}, 1},
	} {
		var page []metav1.Object
		for _, text := range row.manifests {
			o, err := manifest.Decode([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			page = append(page, o)
		}
		if got := missing(page); len(got) != row.missing {
			t.Errorf("%s: %q, want %d", name, got, row.missing)
		}
	}
}
