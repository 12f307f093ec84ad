package persistentvolume

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// page is what a list says about itself.
type page struct {
	items   int
	version string
	// next is the token of the following page, empty on the last.
	next string
	// remaining is how many items follow this page, nil when the API server
	// did not say (it does not when a selector is set).
	remaining *int
}

// decodePage reads one PersistentVolumeList and hands its items to each one by
// one, so that a page of any size costs the memory of one item; the object is
// reused and must not be kept. An answer that is not a whole list is an error:
// a body that ends early, or the `{}` of something that is no API server, must
// not look like a cluster without volumes.
func decodePage(body io.Reader, each func(*object)) (page, error) {
	var (
		p       page
		kind    string
		listed  bool
		decoder = json.NewDecoder(body)
	)
	err := decodeObject(decoder, func(key string) error {
		switch key {
		case "kind":
			return decoder.Decode(&kind)
		case "metadata":
			return p.decodeMetadata(decoder)
		case "items":
			listed = true
			return p.decodeItems(decoder, each)
		default:
			var skipped json.RawMessage
			return decoder.Decode(&skipped)
		}
	})
	switch {
	case err != nil:
		return page{}, fmt.Errorf("decode the list of PersistentVolumes: %w", err)
	case kind != "PersistentVolumeList" || !listed || p.version == "":
		return page{}, fmt.Errorf("decode the list of PersistentVolumes: the answer (kind %q) is not one", kind)
	}
	return p, nil
}

func (p *page) decodeMetadata(decoder *json.Decoder) error {
	var metadata struct {
		ResourceVersion    string `json:"resourceVersion"`
		Continue           string `json:"continue"`
		RemainingItemCount *int   `json:"remainingItemCount"`
	}
	if err := decoder.Decode(&metadata); err != nil {
		return err
	}
	p.version, p.next, p.remaining = metadata.ResourceVersion, metadata.Continue, metadata.RemainingItemCount
	return nil
}

func (p *page) decodeItems(decoder *json.Decoder, each func(*object)) error {
	token, err := decoder.Token()
	if err != nil {
		return whole(err)
	}
	if token == nil { // an empty slice of Go may be written as null
		return nil
	}
	if token != json.Delim('[') {
		return fmt.Errorf("items is %v, not a list", token)
	}
	for decoder.More() {
		var o object
		if err := decoder.Decode(&o); err != nil {
			return whole(err)
		}
		if o.Metadata.Name == "" || o.Metadata.UID == "" {
			return errors.New("an item has no name or no UID")
		}
		p.items++
		each(&o)
	}
	_, err = decoder.Token()
	return whole(err)
}

// decodeObject reads one JSON object and calls value at each key; value must
// consume that key's value. Nothing may follow the object.
func decodeObject(decoder *json.Decoder, value func(key string) error) error {
	token, err := decoder.Token()
	if err != nil {
		return whole(err)
	}
	if token != json.Delim('{') {
		return fmt.Errorf("the answer begins with %v, not with an object", token)
	}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return whole(err)
		}
		key, _ := token.(string) // the decoder allows nothing but a string here
		if err := value(key); err != nil {
			return whole(err)
		}
	}
	if _, err := decoder.Token(); err != nil {
		return whole(err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("something follows the list")
	}
	return nil
}

// whole makes the end of the body, met before the end of the list, an error
// that cannot be taken for a normal end.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
