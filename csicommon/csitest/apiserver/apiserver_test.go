package apiserver_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"liken.sh/csicommon/csitest/apiserver"
)

// ask sends a request to s in the process and returns the answer's code and body.
func ask(t *testing.T, s *apiserver.Server, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://fake"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := s.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

const good = `{"metadata":{"name":"web-0.1"},"involvedObject":{"kind":"Pod","apiVersion":"v1","namespace":"shop","name":"web-0","uid":"1"},
"type":"Warning","reason":"Bad","message":"words","source":{"component":"d"},"reportingComponent":"d","reportingInstance":"n",
"count":1,"firstTimestamp":"2026-01-01T00:00:00Z","lastTimestamp":"2026-01-01T00:00:00Z"}`

func TestEventsAreValidated(t *testing.T) {
	tests := map[string]struct {
		from, to string
		code     int
	}{
		"good":                      {"", "", 201},
		"upper case in the name":    {"web-0.1", "Web-0.1", 422},
		"a name of 254 bytes":       {"web-0.1", strings.Repeat("a", 254), 422},
		"another namespace":         {`"shop"`, `"blog"`, 422},
		"no namespace of the pod":   {`"namespace":"shop",`, ``, 422},
		"a third type":              {"Warning", "Error", 422},
		"no reason":                 {`"Bad"`, `""`, 422},
		"a message of 1,025 bytes":  {"words", strings.Repeat("a", 1025), 422},
		"no reporting instance":     {`"reportingInstance":"n"`, `"x":1`, 422},
		"no count":                  {`"count":1`, `"count":0`, 422},
		"no time":                   {`"firstTimestamp":"2026-01-01T00:00:00Z",`, ``, 422},
		"the last before the first": {`"firstTimestamp":"2026-01-01`, `"firstTimestamp":"2026-01-02`, 422},
		"bytes that are no UTF-8":   {"words", "caf\xe9", 400},
		"no JSON":                   {"{", "", 400},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			event := strings.Replace(good, test.from, test.to, 1)
			code, body := ask(t, apiserver.New(), "POST", "/api/v1/namespaces/shop/events", event)
			if code != test.code {
				t.Errorf("the answer is %d %s, want %d", code, body, test.code)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	s := apiserver.New()
	const all = "/api/v1/namespaces/shop/events"
	steps := []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"POST", all, good, 201, `"count":1`},
		{"POST", all, good, 409, "AlreadyExists"},
		{"PATCH", all + "/web-0.1", `{"count":7,"message":null}`, 422, "message"},
		{"PATCH", all + "/web-0.1", `{"count":7}`, 200, `"count":7`},
		{"PATCH", all + "/web-0.2", `{"count":7}`, 404, "NotFound"},
		{"GET", all + "/web-0.1", "", 200, `"words"`},
		{"GET", all + "?fieldSelector=reason%3DBad,involvedObject.uid%3D1", "", 200, `"count":7`},
		{"GET", all + "?fieldSelector=reason%3DGood", "", 200, `"items":[]`},
		{"GET", all + "?fieldSelector=message%3Dwords", "", 400, "not supported"},
		{"GET", "/api/v1/namespaces/blog/events", "", 200, `"items":[]`},
		{"DELETE", all + "/web-0.1", "", 200, "Success"},
		{"GET", all + "/web-0.1", "", 404, "NotFound"},
		{"PUT", all, "", 405, "MethodNotAllowed"},
	}
	for _, step := range steps {
		if code, body := ask(t, s, step.method, step.path, step.body); code != step.code || !strings.Contains(body, step.want) {
			t.Errorf("%s %s is answered %d %s, want %d and %s", step.method, step.path, code, body, step.code, step.want)
		}
	}
	if n := s.Count("patch", "events"); n != 3 {
		t.Errorf("%d patches are counted, want 3", n)
	}
}

func TestForeignVolumesAreAsLargeAsRealOnes(t *testing.T) {
	s := apiserver.New()
	s.AddForeignVolumes(10)
	_, body := ask(t, s, "GET", "/api/v1/persistentvolumes?limit=4", "")
	var list struct {
		Metadata struct {
			Continue           string
			RemainingItemCount int
		}
		Items []json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 4 || list.Metadata.RemainingItemCount != 6 {
		t.Errorf("%d items and %d remain, want 4 and 6", len(list.Items), list.Metadata.RemainingItemCount)
	}
	if size := len(list.Items[0]); size < 1500 || size > 3000 {
		t.Errorf("one has %d bytes, want about 2,000", size)
	}
	s.Compact()
	if code, body := ask(t, s, "GET", "/api/v1/persistentvolumes?limit=4&continue="+list.Metadata.Continue, ""); code != 410 {
		t.Errorf("an expired token is answered %d %s", code, body)
	}
}

func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := apiserver.New()
		s.PutVolume(apiserver.Volume("p1", "d", "h1"))
		s.PutVolume(apiserver.Volume("p2", "d", "h2"))
		request, err := http.NewRequestWithContext(t.Context(), "GET",
			"http://fake/api/v1/persistentvolumes?watch=true&fieldSelector=metadata.name%3Dp1&resourceVersion=100&timeoutSeconds=60", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := s.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		s.MarkDeleting("p1")
		s.DeleteVolume("p2")
		s.DeleteVolume("p1")
		var seen []string
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); { // until the 60 s are over
			var line struct {
				Type   string
				Object struct{ Metadata struct{ Name string } }
			}
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			seen = append(seen, line.Type+" "+line.Object.Metadata.Name)
		}
		if got := strings.Join(seen, ", "); got != "ADDED p1, MODIFIED p1, DELETED p1" {
			t.Errorf("the watch said %s", got)
		}
		if n := s.Watches(); n != 0 {
			t.Errorf("%d watches are left", n)
		}
	})
}

func TestSecrets(t *testing.T) {
	s := apiserver.New()
	s.PutSecret("shop", "forge", map[string]string{"secret": "s"})
	if code, body := ask(t, s, "GET", "/api/v1/namespaces/shop/secrets/forge", ""); code != 200 || !strings.Contains(body, `"data":{"secret":"cw=="}`) {
		t.Errorf("%d %s", code, body)
	}
	s.DeleteSecret("shop", "forge")
	for _, path := range []string{"/api/v1/namespaces/shop/secrets/forge", "/api/v1/namespaces/shop/secrets", "/api/v1/secrets"} {
		if code, body := ask(t, s, "GET", path, ""); code != 404 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

// A merge of annotations is what is served, under the condition of a UID.
func TestVolumesAreAnnotated(t *testing.T) {
	s := apiserver.New()
	uid := s.PutVolume(apiserver.Volume("p1", "d", "h"))
	for patch, code := range map[string]int{
		`{"metadata":{"uid":"` + uid + `","annotations":{"a":"1"}}}`: 200,
		`{"metadata":{"uid":"another","annotations":{"a":"2"}}}`:     409,
		`{"spec":{"capacity":{}}}`:                                   400,
	} {
		if got, body := ask(t, s, "PATCH", "/api/v1/persistentvolumes/p1", patch); got != code {
			t.Errorf("%s: %d %s, want %d", patch, got, body, code)
		}
	}
	if got := s.Annotations("p1"); len(got) != 1 || got["a"] != "1" {
		t.Errorf("the annotations are %v", got)
	}
	if code, body := ask(t, s, "PATCH", "/api/v1/persistentvolumes/p2", `{}`); code != 404 || s.Annotations("p2") != nil {
		t.Errorf("%d %s", code, body)
	}
}
