package persistentvolume

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// Whatever answers, a list is taken only if it is one as a whole, and then it has what a
// decoder of all of it finds.
func FuzzDecodePage(f *testing.F) {
	for _, text := range []string{
		`{}`, `null`, `[]`, `{"kind":"Status","metadata":{},"status":"Failure","code":410}`,
		`{"kind":"PersistentVolumeList","metadata":{"resourceVersion":"7","continue":"t","remainingItemCount":3},"items":[{"metadata":{"name":"a","uid":"u"},"spec":{"csi":{"driver":"d","volumeHandle":"h","volumeAttributes":{"url":"x"}}}}]}`,
		`{"kind":"PersistentVolumeList","metadata":{"resourceVersion":"7"},"items":null}`,
		`{"kind":"PersistentVolumeList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}`,
		`{"items":[],"items":[{"metadata":{"name":"a","uid":"u"}}],"kind":"PersistentVolumeList","metadata":{"resourceVersion":"7"}} `,
		`{"kind":"PersistentVolumeList","metadata":{"resourceVersion":"7"},"items":[]}{}`,
		`{"kind":"PersistentVolumeList","metadata":{"resourceVersion":"7"},"items":[`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var found []object
		p, err := decodePage(bytes.NewReader(body), func(o *object) { found = append(found, *o) })
		if err != nil {
			return
		}
		if p.version == "" || p.items != len(found) {
			t.Errorf("%q is read as %+v with %d items", body, p, len(found))
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(body, &fields); err != nil {
			t.Fatalf("%q is taken, and is no JSON: %v", body, err)
		}
		var items []object
		if err := json.Unmarshal(fields["items"], &items); err != nil {
			t.Fatalf("%q is taken, and its items are no list: %v", body, err)
		}
		// Of a key that is there twice the decoder of all has the last, and this one both.
		if len(items) == len(found) && len(items) > 0 && !reflect.DeepEqual(items, found) && bytes.Count(body, []byte(`items`)) == 1 {
			t.Errorf("%q has %+v, want %+v", body, found, items)
		}
		if bytes.Count(bytes.ToLower(body), []byte(`items`)) == 1 && len(items) != len(found) {
			t.Errorf("%q has %d items, want %d", body, len(found), len(items))
		}
	})
}
