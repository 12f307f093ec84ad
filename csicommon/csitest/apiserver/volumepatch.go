package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// patchVolume merges annotations into a volume, and does nothing else of a patch. A UID in
// the patch is a condition, as it is for the API server.
func (s *Server) patchVolume(w http.ResponseWriter, r *http.Request, name string) {
	if kind := r.Header.Get("Content-Type"); kind != string(types.MergePatchType) {
		refuse(w, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch", schema.GroupResource{Resource: "persistentvolumes"}, name,
			fmt.Sprintf("%q: this server merges only", kind), 0, false))
		return
	}
	var patch struct {
		Metadata struct {
			UID         types.UID         `json:"uid"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&patch); err != nil {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.volumes[name]
	if old == nil {
		refuse(w, notFound("persistentvolumes", name))
		return
	}
	if uid := patch.Metadata.UID; uid != "" && uid != old.volume.UID {
		refuse(w, apierrors.NewConflict(schema.GroupResource{Resource: "persistentvolumes"}, name,
			fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s)", uid, old.volume.UID)))
		return
	}
	pv := old.volume.DeepCopy()
	for key, value := range patch.Metadata.Annotations {
		if pv.Annotations == nil {
			pv.Annotations = map[string]string{}
		}
		pv.Annotations[key] = value
	}
	s.volumes[name] = s.happen("MODIFIED", pv)
	write(w, http.StatusOK, s.volumes[name].volume)
}

// Annotations are those of a volume, nil when there is none of the name.
func (s *Server) Annotations(name string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if volume := s.volumes[name]; volume != nil {
		return volume.volume.Annotations
	}
	return nil
}
