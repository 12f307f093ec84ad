// Package image makes container images without a container engine or a registry:
// archives in the OCI layout, from layers that are plain tar files. It must never
// pull from anywhere: what an image is made of is on this machine.
package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
)

// Image is an image to be.
type Image struct {
	// Names are full names with registry and tag, at least one.
	Names []string
	// Layers are tar files, not compressed, the lowest first.
	Layers []string
	Config Config
}

// Config is how a container of the image starts.
type Config struct {
	Env        []string `json:",omitempty"`
	Entrypoint []string `json:",omitempty"`
	Cmd        []string `json:",omitempty"`
	WorkingDir string   `json:",omitempty"`
}

const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"
)

// descriptor points at a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Write writes the image as an archive. The same image gives the same bytes.
func Write(out io.Writer, image Image) error {
	archive := tar.NewWriter(out)
	manifest := struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Config        descriptor   `json:"config"`
		Layers        []descriptor `json:"layers"`
	}{SchemaVersion: 2, MediaType: typeManifest}
	var digests []string
	for _, layer := range image.Layers {
		blob, err := addLayer(archive, layer)
		if err != nil {
			return fmt.Errorf("add a layer to %q: %w", image.Names, err)
		}
		manifest.Layers = append(manifest.Layers, blob)
		digests = append(digests, blob.Digest)
	}
	config, err := addJSON(archive, typeConfig, map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": image.Config,
		"rootfs": map[string]any{"type": "layers", "diff_ids": digests},
	})
	if err != nil {
		return fmt.Errorf("add the configuration of %q: %w", image.Names, err)
	}
	manifest.Config = config
	top, err := addJSON(archive, typeManifest, manifest)
	if err != nil {
		return fmt.Errorf("add the manifest of %q: %w", image.Names, err)
	}
	var manifests []descriptor
	for _, name := range image.Names {
		// containerd goes by the first annotation, buildah by the second.
		top.Annotations = map[string]string{
			"io.containerd.image.name":          name,
			"org.opencontainers.image.ref.name": name,
		}
		manifests = append(manifests, top)
	}
	index := map[string]any{"schemaVersion": 2, "mediaType": typeIndex, "manifests": manifests}
	content, err := json.Marshal(index)
	if err != nil {
		return fmt.Errorf("encode the index of %q: %w", image.Names, err)
	}
	if err := addFile(archive, "index.json", content); err != nil {
		return fmt.Errorf("write the index of %q: %w", image.Names, err)
	}
	if err := addFile(archive, "oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return fmt.Errorf("write the layout of %q: %w", image.Names, err)
	}
	return archive.Close()
}

func addFile(archive *tar.Writer, name string, content []byte) error {
	header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Format: tar.FormatPAX}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(content)
	return err
}

func addJSON(archive *tar.Writer, mediaType string, document any) (descriptor, error) {
	content, err := json.Marshal(document)
	if err != nil {
		return descriptor{}, err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	blob := descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: int64(len(content))}
	return blob, addFile(archive, "blobs/sha256/"+sum, content)
}

// addLayer reads the file twice: a blob's name comes before its content.
func addLayer(archive *tar.Writer, layer string) (descriptor, error) {
	file, err := os.Open(layer)
	if err != nil {
		return descriptor{}, err
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err != nil {
		return descriptor{}, err
	}
	digest := fmt.Sprintf("%x", sum.Sum(nil))
	header := &tar.Header{Name: "blobs/sha256/" + digest, Mode: 0o644, Size: size, Format: tar.FormatPAX}
	if err := archive.WriteHeader(header); err != nil {
		return descriptor{}, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return descriptor{}, err
	}
	_, err = io.Copy(archive, file)
	return descriptor{MediaType: typeLayer, Digest: "sha256:" + digest, Size: size}, err
}
