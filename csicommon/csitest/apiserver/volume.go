package apiserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stored is one version of one PersistentVolume. It never changes, so that
// snapshots and the history can share it.
type stored struct {
	name    string
	version int
	volume  *corev1.PersistentVolume
	// body is its JSON as an item of a list: without kind and apiVersion.
	body []byte
}

// object is the JSON of s as the API server answers it alone.
func (s *stored) object() []byte {
	return append([]byte(`{"kind":"PersistentVolume","apiVersion":"v1",`), s.body[1:]...)
}

// change is one line of the history.
type change struct {
	kind   string
	volume *stored
}

// Volume makes a bound CSI PersistentVolume to put in. Its claim is default/<name>.
func Volume(name, driver, handle string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "default", Name: name},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle},
			},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
}

// PutVolume creates pv, or changes the one of its name. The UID is the server's:
// a new one each time the name is created. It returns the UID.
func (s *Server) PutVolume(pv *corev1.PersistentVolume) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	pv = pv.DeepCopy()
	kind := "ADDED"
	if old := s.volumes[pv.Name]; old != nil {
		kind = "MODIFIED"
		pv.UID, pv.CreationTimestamp = old.volume.UID, old.volume.CreationTimestamp
	} else {
		pv.UID = uidOf(fmt.Sprintf("uid-%d", s.version+1))
		pv.CreationTimestamp = metav1.NewTime(time.Now())
	}
	s.volumes[pv.Name] = s.happen(kind, pv)
	return string(pv.UID)
}

// MarkDeleting sets the deletionTimestamp of the volume, which a finalizer keeps.
func (s *Server) MarkDeleting(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.volumes[name]
	if old == nil {
		return
	}
	pv := old.volume.DeepCopy()
	now := metav1.NewTime(time.Now())
	pv.DeletionTimestamp = &now
	pv.Finalizers = []string{"example.invalid/hold"}
	s.volumes[name] = s.happen("MODIFIED", pv)
}

// DeleteVolume removes the object, whatever finalizer it has.
func (s *Server) DeleteVolume(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.volumes[name]; old != nil {
		delete(s.volumes, name)
		s.happen("DELETED", old.volume.DeepCopy())
	}
}

// happen makes pv the newest version and wakes the watches; s.mu is held.
func (s *Server) happen(kind string, pv *corev1.PersistentVolume) *stored {
	s.version++
	pv.TypeMeta = metav1.TypeMeta{}
	pv.ResourceVersion = strconv.Itoa(s.version)
	body, err := json.Marshal(pv)
	if err != nil {
		panic(fmt.Sprintf("marshal PersistentVolume %q: %v", pv.Name, err))
	}
	volume := &stored{name: pv.Name, version: s.version, volume: pv, body: body}
	s.history = append(s.history, change{kind: kind, volume: volume})
	close(s.changed)
	s.changed = make(chan struct{})
	return volume
}

// Compact forgets old versions: continue tokens and watches that begin before
// now are answered with 410.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.floor = s.version
	s.history = nil
	s.snapshots = map[int][]*stored{}
}

// AddForeignVolumes adds n volumes of another driver, about 2 KB each and
// named as a provisioner names them. They are there at once: no watch hears of them.
func (s *Server) AddForeignVolumes(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.version++
		name := fmt.Sprintf("pvc-%08x-93c1-4e6b-a7c0-5f1e2d3c4b5a", s.version)
		pv := Volume(name, "ebs.csi.example.invalid", fmt.Sprintf("vol-%017x", s.version))
		pv.UID = uidOf("uid-" + name)
		pv.CreationTimestamp = metav1.NewTime(time.Now())
		pv.Annotations = map[string]string{
			"pv.kubernetes.io/provisioned-by":                       "ebs.csi.example.invalid",
			"volume.kubernetes.io/provisioner-deletion-secret-name": "", "volume.kubernetes.io/provisioner-deletion-secret-namespace": "",
		}
		pv.Finalizers = []string{"kubernetes.io/pv-protection", "external-attacher/ebs-csi-example-invalid"}
		pv.Spec.CSI.FSType = "ext4"
		pv.Spec.CSI.VolumeAttributes = map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": "1767225600000-5913-ebs.csi.example.invalid"}
		pv.Spec.StorageClassName = "gp3"
		fields := `{"f:spec":{` + strings.Repeat(`"f:persistentVolumeReclaimPolicy":{},`, 20) + `"f:volumeMode":{}}}`
		pv.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "csi-provisioner", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}}
		pv.ResourceVersion = strconv.Itoa(s.version)
		body, err := json.Marshal(pv)
		if err != nil {
			panic(fmt.Sprintf("marshal PersistentVolume %q: %v", name, err))
		}
		s.volumes[name] = &stored{name: name, version: s.version, volume: pv, body: body}
	}
}

// sorted returns the volumes as etcd keeps them, by name; s.mu is held.
func (s *Server) sorted() []*stored {
	volumes := make([]*stored, 0, len(s.volumes))
	for _, volume := range s.volumes {
		volumes = append(volumes, volume)
	}
	slices.SortFunc(volumes, func(a, b *stored) int { return strings.Compare(a.name, b.name) })
	return volumes
}
