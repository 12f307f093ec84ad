package apiserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// token is what a continue token says. It is opaque to clients.
type token struct {
	Version int
	Start   int
	Page    int
}

func (t token) encode() string {
	body, _ := json.Marshal(t) // three numbers cannot fail
	return base64.RawURLEncoding.EncodeToString(body)
}

func decodeToken(text string) (token, error) {
	t := token{Page: 1}
	if text == "" {
		return t, nil
	}
	body, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(body, &t)
	}
	if err != nil {
		return token{}, apierrors.NewBadRequest(fmt.Sprintf("continue key is not valid: %v", err))
	}
	return t, nil
}

func (s *Server) answerVolumes(w http.ResponseWriter, r *http.Request, request Request) {
	switch request.Verb {
	case "get":
		s.getVolume(w, request.Name)
	case "list":
		s.listVolumes(w, r.URL.Query())
	case "watch":
		s.watchVolumes(w, r)
	case "patch":
		s.patchVolume(w, r, request.Name)
	default:
		refuse(w, apierrors.NewMethodNotSupported(schema.GroupResource{Resource: request.Resource}, request.Verb))
	}
}

func (s *Server) getVolume(w http.ResponseWriter, name string) {
	s.mu.Lock()
	volume := s.volumes[name]
	s.mu.Unlock()
	if volume == nil {
		refuse(w, notFound("persistentvolumes", name))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(volume.object())
}

// nameOf reads a field selector; PersistentVolumes support metadata.name only.
func nameOf(query url.Values) (fields.Selector, error) {
	selector, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, requirement := range selector.Requirements() {
		if requirement.Field != "metadata.name" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%q is not a known field selector: only %q", requirement.Field, "metadata.name"))
		}
	}
	return selector, nil
}

func (s *Server) listVolumes(w http.ResponseWriter, query url.Values) {
	selector, err := nameOf(query)
	if err != nil {
		refuse(w, err)
		return
	}
	at, err := decodeToken(query.Get("continue"))
	if err != nil {
		refuse(w, err)
		return
	}
	limit, _ := strconv.Atoi(query.Get("limit"))
	volumes, version, err := s.snapshot(at.Version, selector, limit > 0)
	if err != nil {
		refuse(w, err)
		return
	}

	type listMeta struct {
		ResourceVersion    string `json:"resourceVersion"`
		Continue           string `json:"continue,omitempty"`
		RemainingItemCount *int   `json:"remainingItemCount,omitempty"`
	}
	list := struct {
		Kind       string            `json:"kind"`
		APIVersion string            `json:"apiVersion"`
		Metadata   listMeta          `json:"metadata"`
		Items      []json.RawMessage `json:"items"`
	}{Kind: "PersistentVolumeList", APIVersion: "v1", Items: []json.RawMessage{}}
	list.Metadata.ResourceVersion = strconv.Itoa(version)
	rest := volumes[min(at.Start, len(volumes)):]
	if limit > 0 && len(rest) > limit {
		remaining := len(rest) - limit
		rest = rest[:limit]
		list.Metadata.Continue = token{Version: version, Start: at.Start + limit, Page: at.Page + 1}.encode()
		if selector.Empty() {
			list.Metadata.RemainingItemCount = &remaining
		}
	}
	for _, volume := range rest {
		list.Items = append(list.Items, volume.body)
	}
	write(w, http.StatusOK, list)
}

// snapshot returns the volumes as of version, or now when it is 0. One that a
// token may refer to is kept until Compact.
func (s *Server) snapshot(version int, selector fields.Selector, paged bool) ([]*stored, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version != 0 {
		volumes, found := s.snapshots[version]
		if !found {
			return nil, 0, apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result.")
		}
		return volumes, version, nil
	}
	var volumes []*stored
	for _, volume := range s.sorted() {
		if selector.Matches(fields.Set{"metadata.name": volume.name}) {
			volumes = append(volumes, volume)
		}
	}
	if paged {
		s.snapshots[s.version] = volumes
	}
	return volumes, s.version, nil
}
