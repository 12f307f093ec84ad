package event

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"

	"liken.sh/csicommon/apiclient"
)

// object is the part of a core/v1 Event that is written and read.
type object struct {
	Kind       string `json:"kind,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	InvolvedObject struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Namespace  string `json:"namespace,omitempty"`
		Name       string `json:"name"`
		UID        string `json:"uid,omitempty"`
	} `json:"involvedObject"`
	Type    Type   `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Source  struct {
		Component string `json:"component"`
		Host      string `json:"host"`
	} `json:"source"`
	ReportingComponent string `json:"reportingComponent"`
	ReportingInstance  string `json:"reportingInstance"`
	Count              int    `json:"count"`
	FirstTimestamp     string `json:"firstTimestamp"`
	LastTimestamp      string `json:"lastTimestamp"`
}

// timestamp is metav1.Time's form; Kubernetes keeps whole seconds.
func timestamp(t time.Time) string {
	return t.UTC().Format(time.RFC3339)
}

func (p *Poster) object(k key, o occurrences, name string) object {
	// events.k8s.io allows an instance 128 bytes; a node's name may have 253.
	const longestInstance = 128
	var e object
	e.Kind, e.APIVersion = "Event", "v1"
	e.Metadata.Name, e.Metadata.Namespace = name, k.namespace()
	e.InvolvedObject.Kind, e.InvolvedObject.APIVersion = k.about.Kind, k.about.APIVersion
	e.InvolvedObject.Namespace, e.InvolvedObject.Name, e.InvolvedObject.UID = k.about.Namespace, k.about.Name, k.about.UID
	e.Type, e.Reason, e.Message = k.kind, k.reason, k.message
	e.Source.Component, e.Source.Host = p.config.Component, p.config.Node
	e.ReportingComponent = p.config.Component
	e.ReportingInstance = p.config.Node[:min(len(p.config.Node), longestInstance)]
	e.Count = o.count
	e.FirstTimestamp, e.LastTimestamp = timestamp(o.first), timestamp(o.last)
	return e
}

// find looks for the Event of k that another process posted and whose window is
// still open at now. Who may not, or cannot, list Events goes on without: at
// worst there are two Events where one would do.
func (p *Poster) find(ctx context.Context, k key, now time.Time) (record, bool, error) {
	// core/v1 Events can be selected by these fields, but not by their message.
	selector := fields.Set{
		"involvedObject.kind": k.about.Kind, "involvedObject.name": k.about.Name,
		"involvedObject.uid": k.about.UID, "reason": k.reason,
		"type": string(k.kind), "source": p.config.Component,
	}.AsSelector().String()
	const most = 500
	var body []byte
	err := p.call(ctx, func(ctx context.Context) (err error) {
		body, err = apiclient.Body(p.request(p.config.Client.Get(), k).Param("fieldSelector", selector).
			Param("limit", strconv.Itoa(most)).Do(ctx))
		return err
	})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return record{}, false, nil
	}
	if err != nil {
		return record{}, false, err
	}
	var list struct {
		Items []object `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return record{}, false, fmt.Errorf("decode the list of Events: %w", err)
	}
	latest, found := record{}, false
	for _, e := range list.Items {
		last, err := time.Parse(time.RFC3339, e.LastTimestamp)
		if err != nil || !p.same(e, k) || now.Sub(last) > window || (found && !last.After(latest.last)) {
			continue
		}
		latest, found = record{name: e.Metadata.Name, count: e.Count, last: last}, true
	}
	return latest, found, nil
}

// same tells whether e is this node's Event of k. The node counts: two nodes
// that counted up one Event would overwrite each other's counts.
func (p *Poster) same(e object, k key) bool {
	about := e.InvolvedObject
	return about.Kind == k.about.Kind && about.Namespace == k.about.Namespace && about.Name == k.about.Name &&
		about.UID == k.about.UID && e.Type == k.kind && e.Reason == k.reason && e.Message == k.message &&
		e.Source.Component == p.config.Component && e.Source.Host == p.config.Node
}
