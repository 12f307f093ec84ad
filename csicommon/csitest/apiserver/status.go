package apiserver

import (
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func uidOf(uid string) types.UID { return types.UID(uid) }

func write(w http.ResponseWriter, code int, object any) {
	body, err := json.Marshal(object)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// refuse answers err as a Status, with the code it stands for.
func refuse(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	write(w, int(status.Code), status)
}

func notFound(resource, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}

// statusOf makes the error that the API server answers with code.
func statusOf(code int, request Request) error {
	resource := schema.GroupResource{Resource: request.Resource}
	if code == http.StatusForbidden {
		return apierrors.NewForbidden(resource, request.Name, errors.New("injected"))
	}
	if code == http.StatusGone {
		return apierrors.NewResourceExpired("injected: the provided continue parameter is too old")
	}
	failure := apierrors.NewGenericServerResponse(code, request.Verb, resource, request.Name, "injected", 0, false)
	failure.ErrStatus.TypeMeta = metav1.TypeMeta{}
	return failure
}
