package report

import (
	"log/slog"

	"liken.sh/csicommon/event"
	"liken.sh/gitvolume/internal/attributes"
)

// Subject is whose state is reported. What is not known is empty.
type Subject struct {
	Kind attributes.Kind
	// Handle is spec.csi.volumeHandle; for an inline volume, the id that the kubelet made.
	Handle string
	// Volume is the PersistentVolume's name; of an inline volume, its name in the pod.
	Volume string
	// Namespace is the claim's; of an inline volume, the pod's.
	Namespace string
	Claim     string
	ClaimUID  string
}

// Pod is a pod that uses a volume.
type Pod struct {
	Namespace, Name, UID string
}

func (p Pod) object() event.Object { return event.Pod(p.Namespace, p.Name, p.UID) }

// objects are what an Event of the subject is about, if these pods use it. The
// PersistentVolume is for a volume of which nothing else is known: few look there.
func (s Subject) objects(pods ...Pod) []event.Object {
	var about []event.Object
	for _, pod := range pods {
		about = append(about, pod.object())
	}
	if s.Claim != "" {
		about = append(about, event.Claim(s.Namespace, s.Claim, s.ClaimUID))
	}
	if len(about) == 0 && s.Volume != "" && s.Kind != attributes.KindInline {
		about = append(about, event.Volume(s.Volume, ""))
	}
	return about
}

// named gives log the names of the subject and these pods.
func (s Subject) named(log *slog.Logger, pods ...Pod) *slog.Logger {
	log = log.With("volume", s.Handle)
	if s.Claim != "" {
		log = log.With("claim", s.Namespace+"/"+s.Claim)
	}
	for _, pod := range pods {
		log = log.With("pod", pod.Namespace+"/"+pod.Name)
	}
	return log
}

// label is the kind as git_csi_volumes has it.
func label(k attributes.Kind) string {
	switch k {
	case attributes.KindInline:
		return "inline"
	case attributes.KindReadOnlyClaim:
		return "readonly"
	}
	return "writeable"
}
