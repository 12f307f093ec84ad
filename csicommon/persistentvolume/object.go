package persistentvolume

// object is the part of a PersistentVolume that is decoded. What it does not
// name, above all metadata.managedFields, is skipped and never held.
//
// The last three fields are those of the metav1.Status that a watch sends in
// the place of a volume when it fails.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name              string            `json:"name"`
		UID               string            `json:"uid"`
		ResourceVersion   string            `json:"resourceVersion"`
		DeletionTimestamp *string           `json:"deletionTimestamp"`
		Annotations       map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		CSI *struct {
			Driver        string            `json:"driver"`
			Handle        string            `json:"volumeHandle"`
			Attributes    map[string]string `json:"volumeAttributes"`
			StageSecret   *secretRef        `json:"nodeStageSecretRef"`
			PublishSecret *secretRef        `json:"nodePublishSecretRef"`
		} `json:"csi"`
		AccessModes   []string `json:"accessModes"`
		ReclaimPolicy string   `json:"persistentVolumeReclaimPolicy"`
		ClaimRef      *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
			UID       string `json:"uid"`
		} `json:"claimRef"`
		AttributesClass *string `json:"volumeAttributesClassName"`
	} `json:"spec"`

	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// secretRef names a Secret.
type secretRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (r *secretRef) String() string {
	if r == nil {
		return ""
	}
	return r.Namespace + "/" + r.Name
}

// is tells whether o belongs to driver.
func (o *object) is(driver string) bool {
	return o.Spec.CSI != nil && o.Spec.CSI.Driver == driver
}

// volume converts o, keeping those of its annotations that are wanted.
func (o *object) volume(annotations []string) Volume {
	volume := Volume{
		Name:          o.Metadata.Name,
		UID:           o.Metadata.UID,
		AccessModes:   o.Spec.AccessModes,
		ReclaimPolicy: o.Spec.ReclaimPolicy,
		Deleting:      o.Metadata.DeletionTimestamp != nil,
	}
	if csi := o.Spec.CSI; csi != nil {
		volume.Driver, volume.Handle, volume.Attributes = csi.Driver, csi.Handle, csi.Attributes
		volume.StageSecret, volume.PublishSecret = csi.StageSecret.String(), csi.PublishSecret.String()
	}
	if claim := o.Spec.ClaimRef; claim != nil {
		volume.ClaimNamespace, volume.ClaimName, volume.ClaimUID = claim.Namespace, claim.Name, claim.UID
	}
	if class := o.Spec.AttributesClass; class != nil {
		volume.AttributesClass = *class
	}
	for _, key := range annotations {
		value, found := o.Metadata.Annotations[key]
		if !found {
			continue
		}
		if volume.Annotations == nil {
			volume.Annotations = map[string]string{}
		}
		volume.Annotations[key] = value
	}
	return volume
}
