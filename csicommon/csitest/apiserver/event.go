package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Events returns those of namespace, the oldest first.
func (s *Server) Events(namespace string) []corev1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var events []corev1.Event
	for _, event := range s.events[namespace] {
		events = append(events, *event.DeepCopy())
	}
	slices.SortFunc(events, func(a, b corev1.Event) int { return created(a) - created(b) })
	return events
}

// created is the version an Event was created with, kept in its UID.
func created(event corev1.Event) int {
	version, _ := strconv.Atoi(strings.TrimPrefix(string(event.UID), "event-"))
	return version
}

// DeleteEvent removes one, as a person or its expiry does.
func (s *Server) DeleteEvent(namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.events[namespace], name)
}

func (s *Server) answerEvents(w http.ResponseWriter, r *http.Request, request Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	there := s.events[request.Namespace][request.Name]
	if there == nil && request.Name != "" {
		refuse(w, notFound("events", request.Name))
		return
	}
	switch request.Verb {
	case "create":
		s.createEvent(w, request.Namespace, body)
	case "list":
		s.listEvents(w, request.Namespace, r.URL.Query().Get("fieldSelector"))
	case "get":
		write(w, http.StatusOK, there)
	case "patch":
		if kind := r.Header.Get("Content-Type"); kind != "application/merge-patch+json" {
			http.Error(w, fmt.Sprintf("this server knows no patch of type %q", kind), http.StatusUnsupportedMediaType)
			return
		}
		s.patchEvent(w, there, body)
	case "delete":
		delete(s.events[request.Namespace], request.Name)
		write(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess})
	default:
		refuse(w, apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "events"}, request.Verb))
	}
}

func (s *Server) createEvent(w http.ResponseWriter, namespace string, body []byte) {
	event := &corev1.Event{}
	if err := json.Unmarshal(body, event); err != nil {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	if event.Namespace == "" {
		event.Namespace = namespace
	}
	if err := validateEvent(event, namespace, body); err != nil {
		refuse(w, err)
		return
	}
	if s.events[namespace][event.Name] != nil {
		refuse(w, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, event.Name))
		return
	}
	s.version++
	event.UID = uidOf(fmt.Sprintf("event-%d", s.version))
	event.CreationTimestamp = metav1.NewTime(time.Now())
	if s.events[namespace] == nil {
		s.events[namespace] = map[string]*corev1.Event{}
	}
	s.keepEvent(w, http.StatusCreated, event)
}

// keepEvent stores event as the newest version and answers with it.
func (s *Server) keepEvent(w http.ResponseWriter, code int, event *corev1.Event) {
	event.Kind, event.APIVersion = "Event", "v1"
	event.ResourceVersion = strconv.Itoa(s.version)
	s.events[event.Namespace][event.Name] = event
	write(w, code, event)
}

func (s *Server) patchEvent(w http.ResponseWriter, there *corev1.Event, patch []byte) {
	merged, err := mergePatch(there, patch)
	if err != nil {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	event := &corev1.Event{}
	if err := json.Unmarshal(merged, event); err != nil {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	if err := validateEvent(event, there.Namespace, merged); err != nil {
		refuse(w, err)
		return
	}
	s.version++
	s.keepEvent(w, http.StatusOK, event)
}

func (s *Server) listEvents(w http.ResponseWriter, namespace, selector string) {
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		refuse(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	for _, requirement := range parsed.Requirements() {
		if !eventFields(&corev1.Event{}).Has(requirement.Field) {
			refuse(w, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", requirement.Field)))
			return
		}
	}
	list := corev1.EventList{TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: "v1"}, Items: []corev1.Event{}}
	list.ResourceVersion = strconv.Itoa(s.version)
	for _, event := range s.events[namespace] {
		if parsed.Matches(eventFields(event)) {
			item := *event.DeepCopy()
			item.TypeMeta = metav1.TypeMeta{}
			list.Items = append(list.Items, item)
		}
	}
	write(w, http.StatusOK, list)
}

// eventFields are the fields core/v1 Events can be selected by.
func eventFields(event *corev1.Event) fields.Set {
	source := event.Source.Component
	if source == "" {
		source = event.ReportingController
	}
	return fields.Set{
		"metadata.name":                  event.Name,
		"metadata.namespace":             event.Namespace,
		"involvedObject.kind":            event.InvolvedObject.Kind,
		"involvedObject.namespace":       event.InvolvedObject.Namespace,
		"involvedObject.name":            event.InvolvedObject.Name,
		"involvedObject.uid":             string(event.InvolvedObject.UID),
		"involvedObject.apiVersion":      event.InvolvedObject.APIVersion,
		"involvedObject.resourceVersion": event.InvolvedObject.ResourceVersion,
		"involvedObject.fieldPath":       event.InvolvedObject.FieldPath,
		"reason":                         event.Reason,
		"reportingComponent":             event.ReportingController,
		"source":                         source,
		"type":                           event.Type,
	}
}
