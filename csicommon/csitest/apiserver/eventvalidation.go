package apiserver

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The limits of events.k8s.io. For core/v1 the API server applies them only to
// Events with an eventTime; here they hold for all, so that no driver posts
// what a later version of the API would refuse.
const (
	longestMessage = 1024
	longestReason  = 128
)

// validateEvent refuses what the API server refuses of an Event in namespace,
// and what one of these drivers must not post. body is its JSON.
func validateEvent(event *corev1.Event, namespace string, body []byte) error {
	var errs field.ErrorList
	bad := func(path string, value any, detail string) {
		errs = append(errs, field.Invalid(field.NewPath(path), value, detail))
	}
	if event.Namespace != namespace {
		return apierrors.NewBadRequest("the namespace of the object does not match the namespace of the request")
	}
	if !utf8.Valid(body) {
		return apierrors.NewBadRequest("the body is not UTF-8")
	}
	for _, detail := range validation.IsDNS1123Subdomain(event.Name) {
		bad("metadata.name", event.Name, detail)
	}
	about := event.InvolvedObject
	if about.Namespace != namespace && (about.Namespace != "" || namespace != "default") {
		bad("involvedObject.namespace", about.Namespace, "does not match event.namespace")
	}
	if about.Kind == "" || about.Name == "" || about.APIVersion == "" {
		bad("involvedObject", about, "kind, name and apiVersion are required")
	}
	if event.Type != corev1.EventTypeNormal && event.Type != corev1.EventTypeWarning {
		bad("type", event.Type, "must be Normal or Warning")
	}
	if event.Reason == "" || len(event.Reason) > longestReason {
		bad("reason", event.Reason, fmt.Sprintf("must have 1 to %d bytes", longestReason))
	}
	if event.Message == "" || len(event.Message) > longestMessage {
		bad("message", len(event.Message), fmt.Sprintf("must have 1 to %d bytes", longestMessage))
	}
	for _, detail := range validation.IsQualifiedName(event.ReportingController) {
		bad("reportingComponent", event.ReportingController, detail)
	}
	if event.ReportingInstance == "" || len(event.ReportingInstance) > 128 {
		bad("reportingInstance", event.ReportingInstance, "must have 1 to 128 bytes")
	}
	if event.Source.Component == "" {
		bad("source.component", "", "is required")
	}
	if event.Count < 1 || event.FirstTimestamp.IsZero() || event.LastTimestamp.Before(&event.FirstTimestamp) {
		bad("count", event.Count, "count and ordered timestamps are required")
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Event"}, event.Name, errs)
	}
	return nil
}

// mergePatch applies an RFC 7386 merge patch to object.
func mergePatch(object any, patch []byte) ([]byte, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var target, change any
	if err := json.Unmarshal(body, &target); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(patch, &change); err != nil {
		return nil, fmt.Errorf("decode the patch: %w", err)
	}
	return json.Marshal(merge(target, change))
}

func merge(target, change any) any {
	changes, isObject := change.(map[string]any)
	if !isObject {
		return change
	}
	result, isObject := target.(map[string]any)
	if !isObject {
		result = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(result, key)
			continue
		}
		result[key] = merge(result[key], value)
	}
	return result
}
