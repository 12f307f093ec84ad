// Package bom lists what is in an image, in CycloneDX's format: the modules that are
// linked into its program, and its Debian packages. It only reads what it is handed, and
// must never list what it did not find there.
package bom

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Image is what is known of an image.
type Image struct {
	// Name is what it is the list of, Version and Architecture which one; Digest is its
	// manifest's, as in sha256:….
	Name, Version, Architecture, Digest string
	Made                                time.Time
	// Program is the driver's, as it is in the image.
	Program []byte
	// Licences has those of each module by its path: SPDX's names.
	Licences map[string][]string
	// Status is dpkg's list of packages, empty where there is none. Copyrights has the
	// text of each package's copyright file by its name.
	Status     []byte
	Copyrights map[string][]byte
}

type document struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Serial     string      `json:"serialNumber"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type     string          `json:"type"`
	Ref      string          `json:"bom-ref"`
	Name     string          `json:"name"`
	Version  string          `json:"version,omitempty"`
	Licences []licenceChoice `json:"licenses,omitempty"`
	PURL     string          `json:"purl,omitempty"`
	Hashes   []hash          `json:"hashes,omitempty"`
}

type licenceChoice struct {
	Licence licence `json:"license"`
}

// licence has one of both: SPDX's name, or what Debian calls it.
type licence struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// Write makes the list. The same image gives the same bytes.
func Write(image Image) ([]byte, error) {
	modules, err := modules(image)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(image.Digest))
	id := hex.EncodeToString(sum[:16])
	list := document{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		// A UUID of the kind that is what one wants it to be (RFC 9562, version 8).
		Serial: fmt.Sprintf("urn:uuid:%s-%s-8%s-8%s-%s", id[:8], id[8:12], id[13:16], id[17:20], id[20:]),
		Metadata: metadata{
			Timestamp: image.Made.UTC().Format(time.RFC3339),
			Component: component{
				Type: "container", Ref: image.Digest, Name: image.Name, Version: image.Version,
				Hashes: []hash{{"SHA-256", strings.TrimPrefix(image.Digest, "sha256:")}},
			},
		},
		Components: append(modules, packages(image)...),
	}
	return json.MarshalIndent(list, "", "  ")
}

// modules are those that the program itself says it was built of, and the standard
// library.
func modules(image Image) ([]component, error) {
	info, err := buildinfo.Read(bytes.NewReader(image.Program))
	if err != nil {
		return nil, fmt.Errorf("ask the program what it was built of: %w", err)
	}
	found := []component{golang("std", info.GoVersion, image.Licences["std"])}
	for _, dependency := range info.Deps {
		if dependency.Replace != nil {
			// One of the same repository, and the image's own.
			found = append(found, golang(dependency.Path, image.Version, []string{"Apache-2.0"}))
			continue
		}
		licences := image.Licences[dependency.Path]
		if len(licences) == 0 {
			return nil, fmt.Errorf("the program was built of %s, of which no licence is known", dependency.Path)
		}
		found = append(found, golang(dependency.Path, dependency.Version, licences))
	}
	return found, nil
}

func golang(path, version string, licences []string) component {
	c := component{Type: "library", Name: path, Version: version, PURL: "pkg:golang/" + path + "@" + version}
	c.Ref = c.PURL
	for _, id := range licences {
		c.Licences = append(c.Licences, licenceChoice{licence{ID: id}})
	}
	return c
}

// licenceLine is one of Debian's machine-readable copyright files.
var licenceLine = regexp.MustCompile(`(?m)^License: *(\S.*)$`)

// packages are those that dpkg has installed.
func packages(image Image) []component {
	var found []component
	for paragraph := range strings.SplitSeq(string(image.Status), "\n\n") {
		fields := make(map[string]string)
		for lines := bufio.NewScanner(strings.NewReader(paragraph)); lines.Scan(); {
			if name, value, is := strings.Cut(lines.Text(), ": "); is && !strings.HasPrefix(name, " ") {
				fields[name] = value
			}
		}
		name := fields["Package"]
		if name == "" || fields["Status"] != "install ok installed" {
			continue
		}
		c := component{Type: "library", Name: name, Version: fields["Version"]}
		c.PURL = fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s&distro=debian-12", name, strings.NewReplacer("+", "%2B", ":", "%3A").Replace(c.Version), fields["Architecture"])
		c.Ref = c.PURL
		c.Licences = debianLicences(image.Copyrights[name])
		found = append(found, c)
	}
	return found
}

func debianLicences(copyright []byte) []licenceChoice {
	if !bytes.HasPrefix(copyright, []byte("Format:")) {
		return nil
	}
	var names []string
	for _, match := range licenceLine.FindAllSubmatch(copyright, -1) {
		names = append(names, strings.TrimSpace(string(match[1])))
	}
	slices.Sort(names)
	var all []licenceChoice
	for _, name := range slices.Compact(names) {
		all = append(all, licenceChoice{licence{Name: name}})
	}
	return all
}
