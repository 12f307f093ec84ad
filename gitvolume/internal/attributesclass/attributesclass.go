// Package attributesclass reads VolumeAttributesClasses from the API server, one by its
// name.
//
// It must never take an answer that failed for a class that is not there, and never decide
// what a class means.
package attributesclass

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"liken.sh/csicommon/apiclient"
	"liken.sh/gitvolume/internal/policy"
)

const (
	kind = "VolumeAttributesClass"
	path = "/apis/storage.k8s.io/v1/volumeattributesclasses"
	// callTimeout bounds one read.
	callTimeout = 30 * time.Second
)

// ErrNone says that the cluster has no class of the name. Other errors say nothing about it.
var ErrNone = errors.New("there is no such " + kind)

// Reader reads classes. It may be used by many goroutines.
type Reader struct{ client rest.Interface }

// New reads with the client.
func New(client rest.Interface) *Reader { return &Reader{client: client} }

// class is as much of a VolumeAttributesClass as is needed.
type class struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	DriverName string            `json:"driverName"`
	Parameters map[string]string `json:"parameters"`
}

// Read asks for the class of a name.
func (r *Reader) Read(ctx context.Context, name string) (policy.Class, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	body, err := apiclient.Body(r.client.Get().AbsPath(path, name).Do(ctx))
	if apiclient.IsAbsence(err) {
		return policy.Class{}, fmt.Errorf("class %s: %w", name, ErrNone)
	}
	if err != nil {
		return policy.Class{}, fmt.Errorf("read class %s: %w", name, err)
	}
	var c class
	if err := json.Unmarshal(body, &c); err != nil {
		return policy.Class{}, fmt.Errorf("decode class %s: %w", name, err)
	}
	if c.Kind != kind || c.Metadata.Name != name {
		return policy.Class{}, fmt.Errorf("read class %s: the answer is %s %q", name, c.Kind, c.Metadata.Name)
	}
	return policy.Class{Name: name, Driver: c.DriverName, Parameters: c.Parameters}, nil
}
