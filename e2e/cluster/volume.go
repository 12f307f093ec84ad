package cluster

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Class makes a VolumeAttributesClass of the driver, and returns its name.
func (s *Space) Class(parameters map[string]string) string {
	s.T.Helper()
	class, err := s.kube.Client.StorageV1().VolumeAttributesClasses().Create(s.T.Context(), &storagev1.VolumeAttributesClass{
		ObjectMeta: metav1.ObjectMeta{GenerateName: s.Name + "-", Labels: map[string]string{s.Driver.Label(): s.Name}},
		DriverName: s.Driver.Name,
		Parameters: parameters,
	}, metav1.CreateOptions{})
	if err != nil {
		s.T.Fatalf("make a class: %v", err)
	}
	return class.Name
}

// Volume makes a PersistentVolume of the driver, whose name is also the handle unless
// change says another, and a claim of that name, classes and access modes.
func (s *Space) Volume(spec corev1.PersistentVolumeSpec, change ...func(*corev1.PersistentVolume)) string {
	s.T.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	// The handle is the name, so it has to be known before the API server makes one.
	name := fmt.Sprintf("%s-%x", s.Name, time.Now().UnixNano())
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{s.Driver.Label(): s.Name}},
		Spec:       spec,
	}
	volume.Spec.Capacity = size
	volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: s.Name, Name: name}
	if volume.Spec.CSI == nil {
		volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{}
	}
	volume.Spec.CSI.Driver, volume.Spec.CSI.VolumeHandle = s.Driver.Name, name
	for _, c := range change {
		c(volume)
	}
	if _, err := s.kube.Client.CoreV1().PersistentVolumes().Create(s.T.Context(), volume, metav1.CreateOptions{}); err != nil {
		s.T.Fatalf("make a volume: %v", err)
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName:          &volume.Spec.StorageClassName,
			VolumeAttributesClassName: volume.Spec.VolumeAttributesClassName,
			AccessModes:               volume.Spec.AccessModes,
			Resources:                 corev1.VolumeResourceRequirements{Requests: size},
		},
	}
	if _, err := s.kube.Client.CoreV1().PersistentVolumeClaims(s.Name).Create(s.T.Context(), claim, metav1.CreateOptions{}); err != nil {
		s.T.Fatalf("make a claim: %v", err)
	}
	return name
}
