package attributesclass_test

import (
	"errors"
	"maps"
	"testing"

	"liken.sh/csicommon/apiclient"
	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/gitvolume/internal/attributesclass"
)

func newReader(t *testing.T) (*apiserver.Server, *attributesclass.Reader) {
	t.Helper()
	server := apiserver.New()
	client, err := apiclient.ForConfig(server.Start(t))
	if err != nil {
		t.Fatal(err)
	}
	return server, attributesclass.New(client)
}

func TestRead(t *testing.T) {
	server, reader := newReader(t)
	parameters := map[string]string{"push.quiesce": "10s"}
	server.PutClass("fast", "git.example", parameters)
	got, err := reader.Read(t.Context(), "fast")
	if err != nil || got.Name != "fast" || got.Driver != "git.example" || !maps.Equal(got.Parameters, parameters) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := reader.Read(t.Context(), "slow"); !errors.Is(err, attributesclass.ErrNone) {
		t.Errorf("a class that is not there: %v", err)
	}
	server.DeleteClass("fast")
	if _, err := reader.Read(t.Context(), "fast"); !errors.Is(err, attributesclass.ErrNone) {
		t.Errorf("a class that was deleted: %v", err)
	}
}

// An answer that failed says nothing about the class.
func TestFailedAnswers(t *testing.T) {
	for name, action := range map[string]apiserver.Action{
		"a cut connection":       apiserver.Cut(),
		"forbidden":              apiserver.Refuse(403),
		"unavailable":            apiserver.Refuse(503),
		"the page of a proxy":    apiserver.Page(404, "no such page"),
		"nothing":                apiserver.Page(200, "{}"),
		"half of it":             apiserver.Truncate(),
		"another class's answer": apiserver.Page(200, `{"kind":"VolumeAttributesClass","metadata":{"name":"other"}}`),
	} {
		server, reader := newReader(t)
		server.PutClass("fast", "git.example", nil)
		server.Inject(apiserver.Fault{Resource: "volumeattributesclasses", Do: action})
		if got, err := reader.Read(t.Context(), "fast"); err == nil || errors.Is(err, attributesclass.ErrNone) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
