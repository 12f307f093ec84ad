package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"liken.sh/gitvolume/internal/driver"
	"liken.sh/gitvolume/internal/policy"
	"liken.sh/gitvolume/internal/writeable"
)

// errNoClass is why a directory is not committed of which nobody said how.
var errNoClass = errors.New("there is no --class")

// classKind is what a class is in Kubernetes.
const classKind = "VolumeAttributesClass"

// unarmed is what counts without a class.
func unarmed() writeable.Arming {
	return writeable.Arming{Policy: policy.Default(), Unarmed: errNoClass}
}

// readClass reads the class of a file. The error, of one that is unusable, is also what
// the arming is unarmed for; a class that pauses is usable.
func readClass(file string) (writeable.Arming, error) {
	arming := writeable.Arming{Policy: policy.Default(), Class: filepath.Base(file)}
	class, err := parseClass(file)
	if err == nil {
		arming.Class = class.Name
		var p policy.Policy
		if p, arming.Unarmed = class.Arm(driver.Name); arming.Unarmed == nil || errors.Is(arming.Unarmed, policy.ErrPaused) {
			arming.Policy = p
			return arming, nil
		}
		err = arming.Unarmed
	}
	arming.Unarmed = fmt.Errorf("--class %s: %w", file, err)
	return arming, arming.Unarmed
}

func parseClass(file string) (policy.Class, error) {
	text, err := readFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return policy.Class{}, fmt.Errorf("there is no such file: give the one with the %s", classKind)
	}
	if err != nil {
		return policy.Class{}, err
	}
	if hasDocuments(text) {
		return policy.Class{}, errors.New("it has more than one document: put the class into a file of its own")
	}
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return policy.Class{}, fmt.Errorf("it is no YAML of a %s: %w", classKind, err)
	}
	if err := checkShape(asJSON); err != nil {
		return policy.Class{}, err
	}
	var class storagev1.VolumeAttributesClass
	if err := decodeStrictly(asJSON, &class); err != nil {
		return policy.Class{}, fmt.Errorf("it is no %s: %w", classKind, err)
	}
	switch {
	case class.Name == "":
		return policy.Class{}, errors.New("metadata.name is missing")
	case len(class.Parameters) == 0:
		return policy.Class{}, errors.New("parameters are missing, and Kubernetes wants at least one: write push.quiesce: 30s, which is the default")
	}
	return policy.Class{Name: class.Name, Driver: class.DriverName, Parameters: class.Parameters}, nil
}

// shape is as much of a class as tells what is wrong with a file in words of YAML.
type shape struct {
	Kind, APIVersion json.RawMessage
	Parameters       json.RawMessage
}

// checkShape refuses a file that is another thing than a class, and parameters that are no
// text: those are what people forget to quote.
func checkShape(asJSON []byte) error {
	write := fmt.Sprintf("write one of kind %s and apiVersion %s", classKind, storagev1.SchemeGroupVersion)
	var s shape
	switch err := json.Unmarshal(asJSON, &s); {
	case string(bytes.TrimSpace(asJSON)) == "null":
		return errors.New("it is empty: " + write)
	case err != nil:
		return errors.New("it has no fields, as a class has: " + write)
	case s.Kind == nil:
		return errors.New("kind is missing: " + write)
	case s.APIVersion == nil:
		return errors.New("apiVersion is missing: " + write)
	}
	versions := []string{strconv.Quote(storagev1.SchemeGroupVersion.String()), strconv.Quote(storagev1beta1.SchemeGroupVersion.String())}
	if string(s.Kind) != strconv.Quote(classKind) || !slices.Contains(versions, string(s.APIVersion)) {
		return fmt.Errorf("it is a %s of %s: %s", s.Kind, s.APIVersion, write)
	}
	var parameters map[string]json.RawMessage
	if s.Parameters != nil && json.Unmarshal(s.Parameters, &parameters) != nil {
		return errors.New("parameters have to be names and values, such as push.quiesce: 30s")
	}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		switch value := parameters[name]; value[0] {
		case '"':
		case '{', '[':
			return fmt.Errorf("parameter %s has to be a text: write it in quotes", name)
		case 'n':
			return fmt.Errorf("parameter %s has no value: write one in quotes", name)
		default:
			return fmt.Errorf("parameter %s is %s without quotes, which is no text: write %s: %q", name, value, name, value)
		}
	}
	return nil
}

// decodeStrictly refuses what Kubernetes would refuse or drop in silence: a field that is
// not known or given twice, and what is no text, as true without quotes.
func decodeStrictly(asJSON []byte, class *storagev1.VolumeAttributesClass) error {
	strict, err := kjson.UnmarshalStrict(asJSON, class)
	// The strict decoder's error of a wrong type has no fields to tell it by.
	var kind *json.UnmarshalTypeError
	if err != nil && errors.As(json.Unmarshal(asJSON, &storagev1.VolumeAttributesClass{}), &kind) {
		return fmt.Errorf("%s is a %s, which does not go there: a text has to be in quotes", kind.Field, kind.Value)
	}
	return errors.Join(append(strict, err)...)
}

// hasDocuments tells whether a file of YAML has several, of which the first alone would be
// read.
func hasDocuments(text []byte) bool {
	documents := 0
	for document := range strings.SplitSeq("\n"+string(text), "\n---") {
		for line := range strings.Lines(document) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				documents++
				break
			}
		}
	}
	return documents > 1
}
