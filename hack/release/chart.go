package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// reference is an image in a registry, by its digest.
type reference struct{ host, path, digest string }

// parseReference takes HOST/PATH@DIGEST.
func parseReference(text string) (reference, error) {
	name, digest, _ := strings.Cut(text, "@")
	host, path, found := strings.Cut(name, "/")
	if !found || !strings.HasPrefix(digest, "sha256:") {
		return reference{}, fmt.Errorf("%q names no image by its digest: want HOST/PATH@sha256:…", text)
	}
	return reference{host: host, path: path, digest: digest}, nil
}

func (r reference) String() string { return r.host + "/" + r.path + "@" + r.digest }

// values are those of a chart that name the image, as a user would set them.
func (r reference) values() map[string]string {
	return map[string]string{"registry": r.host, "repository": r.path, "digest": r.digest}
}

// nameImage has a chart's directory name the released image, in its values and in its
// page.
func nameImage(chart string, image reference) error {
	for file, in := range map[string]func(string, reference) (string, error){"values.yaml": inValues, "README.md": inPage} {
		path := filepath.Join(chart, file)
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("name the image in the chart: %w", err)
		}
		changed, err := in(string(text), image)
		if err != nil {
			return fmt.Errorf("name the image in %s: %w", path, err)
		}
		if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
			return fmt.Errorf("name the image in the chart: %w", err)
		}
	}
	return nil
}

var imageBlock = regexp.MustCompile(`(?m)^image:\n(?:  .*\n)+`)

// inValues keeps everything else as it is, comments too.
func inValues(text string, image reference) (string, error) {
	block := imageBlock.FindString(text)
	changed := block
	for name, value := range image.values() {
		line := regexp.MustCompile(`(?m)^  ` + name + `: .*$`)
		if len(line.FindAllString(changed, -1)) != 1 {
			return "", fmt.Errorf("there is not one image.%s", name)
		}
		changed = line.ReplaceAllLiteralString(changed, fmt.Sprintf("  %s: %s", name, value))
	}
	return strings.Replace(text, block, changed, 1), nil
}

func inPage(text string, image reference) (string, error) {
	for name, value := range image.values() {
		row := regexp.MustCompile("(?m)^\\| `image\\." + name + "` \\| `[^`]*` \\|")
		if len(row.FindAllString(text, -1)) != 1 {
			return "", fmt.Errorf("there is not one row for image.%s", name)
		}
		text = row.ReplaceAllLiteralString(text, fmt.Sprintf("| `image.%s` | `%q` |", name, value))
	}
	return text, nil
}

// packageChart makes the released chart of the repository's, and returns its file.
func (p publication) packageChart(image reference) (string, error) {
	work := filepath.Join(p.work, "chart")
	source := filepath.Join(p.root, "charts", p.driver)
	chart := filepath.Join(work, p.driver)
	if err := os.CopyFS(chart, os.DirFS(source)); err != nil {
		return "", fmt.Errorf("copy the chart: %w", err)
	}
	if err := nameImage(chart, image); err != nil {
		return "", err
	}
	if _, err := p.run(p.helm, "lint", "--strict", chart); err != nil {
		return "", err
	}
	_, err := p.run(p.helm, "package", chart, "--version", p.chartVersion(), "--app-version", p.version, "--destination", work)
	return filepath.Join(work, p.driver+"-"+p.chartVersion()+".tgz"), err
}

// pushChart pushes it, and returns it by its digest.
func (p publication) pushChart(file string) (reference, error) {
	arguments := []string{"push", file, "oci://" + p.registry + "/charts"}
	if p.plainHTTP {
		arguments = append(arguments, "--plain-http")
	}
	if _, err := p.run(p.helm, arguments...); err != nil {
		return reference{}, err
	}
	digest, err := p.run(p.crane, "digest", p.chartName()+":"+p.chartVersion())
	if err != nil {
		return reference{}, err
	}
	return parseReference(p.chartName() + "@" + digest)
}

func (p publication) chartName() string { return p.registry + "/charts/" + p.driver }

// checkChart pulls the chart back, and fails unless it renders what the repository's
// renders with the image set by hand, and nothing else.
func (p publication) checkChart(image reference) error {
	work := filepath.Join(p.work, "pulled")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return fmt.Errorf("make room for the chart: %w", err)
	}
	arguments := []string{"pull", "oci://" + p.chartName(), "--version", p.chartVersion(), "--destination", work}
	if p.plainHTTP {
		arguments = append(arguments, "--plain-http")
	}
	if _, err := p.run(p.helm, arguments...); err != nil {
		return err
	}
	got, err := p.run(p.helm, "template", p.driver, filepath.Join(work, p.driver+"-"+p.chartVersion()+".tgz"))
	if err != nil {
		return err
	}
	arguments = []string{"template", p.driver, filepath.Join(p.root, "charts", p.driver)}
	for name, value := range image.values() {
		arguments = append(arguments, "--set-string", "image."+name+"="+value)
	}
	want, err := p.run(p.helm, arguments...)
	if err != nil {
		return err
	}
	return p.sameObjects(want, got, image)
}

var (
	chartLabel   = regexp.MustCompile(`(?m)^( *helm\.sh/chart: ).*$`)
	versionLabel = regexp.MustCompile(`(?m)^( *app\.kubernetes\.io/version: ).*$`)
)

// sameObjects compares all that is rendered but what a release is labelled with, which
// has to be its own.
func (p publication) sameObjects(want, got string, image reference) error {
	want = chartLabel.ReplaceAllString(want, "${1}"+p.driver+"-"+p.chartVersion())
	want = versionLabel.ReplaceAllString(want, `${1}"`+p.version+`"`)
	if !strings.Contains(got, image.String()) {
		return fmt.Errorf("the chart that was pulled back does not run %s", image)
	}
	if want == got {
		return nil
	}
	wantLines, gotLines := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(wantLines), len(gotLines)) {
		if wantLines[i] != gotLines[i] {
			return fmt.Errorf("the chart that was pulled back renders another line %d: %q, want %q", i+1, gotLines[i], wantLines[i])
		}
	}
	return errors.New("the chart that was pulled back renders another number of lines")
}
