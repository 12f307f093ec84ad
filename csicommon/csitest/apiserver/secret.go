package apiserver

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
)

const secrets = "secrets"

// PutSecret makes a Secret, in place of the one of its name.
func (s *Server) PutSecret(namespace, name string, data map[string]string) {
	secret := &corev1.Secret{Data: map[string][]byte{}}
	secret.Kind, secret.APIVersion, secret.Namespace, secret.Name = "Secret", "v1", namespace, name
	secret.UID = uidOf("uid-" + namespace + "-" + name)
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets[namespace+"/"+name] = secret
}

// DeleteSecret removes the Secret.
func (s *Server) DeleteSecret(namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.secrets, namespace+"/"+name)
}

func (s *Server) answerSecret(w http.ResponseWriter, namespace, name string) {
	s.mu.Lock()
	secret := s.secrets[namespace+"/"+name]
	s.mu.Unlock()
	if secret == nil {
		refuse(w, notFound(secrets, name))
		return
	}
	write(w, http.StatusOK, secret)
}
