package apiserver

import (
	"maps"
	"net/http"

	storagev1 "k8s.io/api/storage/v1"
)

const classes = "volumeattributesclasses"

// PutClass makes a VolumeAttributesClass, in place of the one of its name.
func (s *Server) PutClass(name, driver string, parameters map[string]string) {
	class := &storagev1.VolumeAttributesClass{DriverName: driver, Parameters: maps.Clone(parameters)}
	class.Kind, class.APIVersion, class.Name = "VolumeAttributesClass", "storage.k8s.io/v1", name
	s.mu.Lock()
	defer s.mu.Unlock()
	class.UID = uidOf("uid-" + name)
	s.classes[name] = class
}

// DeleteClass removes the class.
func (s *Server) DeleteClass(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.classes, name)
}

func (s *Server) answerClass(w http.ResponseWriter, name string) {
	s.mu.Lock()
	class := s.classes[name]
	s.mu.Unlock()
	if class == nil {
		refuse(w, notFound(classes, name))
		return
	}
	write(w, http.StatusOK, class)
}
