// Package podinfo reads what the kubelet says about the pod that a volume is published
// for, in the volume context (CSIDriver podInfoOnMount).
//
// It must never take a pod for known that the kubelet did not name whole: an Event about
// half a name reaches nobody.
package podinfo

// The keys of the volume context.
const (
	KeyName      = "csi.storage.k8s.io/pod.name"
	KeyNamespace = "csi.storage.k8s.io/pod.namespace"
	KeyUID       = "csi.storage.k8s.io/pod.uid"
	// KeyEphemeral is "true" for a volume that is written into a pod, and "false" or
	// missing for one of a PersistentVolume.
	KeyEphemeral = "csi.storage.k8s.io/ephemeral"
)

// Pod is a pod by its names; the zero value is none.
type Pod struct{ Namespace, Name, UID string }

// Of is the pod that a volume context names; false when it names none, as that of any
// caller but a kubelet. The UID may be empty.
func Of(context map[string]string) (pod Pod, known bool) {
	pod = Pod{Namespace: context[KeyNamespace], Name: context[KeyName], UID: context[KeyUID]}
	return pod, pod.Namespace != "" && pod.Name != ""
}

// IsInline tells whether the volume is one that is written into its pod.
func IsInline(context map[string]string) bool { return context[KeyEphemeral] == "true" }
