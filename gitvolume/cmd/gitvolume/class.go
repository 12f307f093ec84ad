package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

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
		if p, arming.Unarmed = class.Arm(driver); arming.Unarmed == nil || errors.Is(arming.Unarmed, policy.ErrPaused) {
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
	if err != nil {
		return policy.Class{}, err
	}
	if hasDocuments(text) {
		return policy.Class{}, errors.New("it has more than one document: put the class into a file of its own")
	}
	var class storagev1.VolumeAttributesClass
	// The kind first, since any other has fields that a class has not.
	if err := yaml.Unmarshal(text, &class.TypeMeta); err != nil {
		return policy.Class{}, fmt.Errorf("it is no YAML of a %s: %w", classKind, err)
	}
	if group, _, _ := strings.Cut(class.APIVersion, "/"); class.Kind != classKind || group != storagev1.GroupName {
		return policy.Class{}, fmt.Errorf("it is a %q of %q: write one of kind %s and apiVersion %s", class.Kind, class.APIVersion, classKind, storagev1.SchemeGroupVersion)
	}
	if err := decodeStrictly(text, &class); err != nil {
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

// decodeStrictly refuses what Kubernetes would refuse or drop in silence: a field that is
// not known or given twice, and a parameter that is no text, as true without quotes.
func decodeStrictly(text []byte, class *storagev1.VolumeAttributesClass) error {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	strict, err := kjson.UnmarshalStrict(asJSON, class)
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
