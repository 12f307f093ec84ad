package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// publication is one release on its way into a registry.
type publication struct {
	repository
	tag
	signer
	// registry is where image and chart go, a host and a path, as in ghcr.io/somebody.
	registry  string
	plainHTTP bool
	// architectures are those whose images are there, all of them in a release.
	architectures []string
	commit        string
	committed     time.Time
	// output has the images, and gets the lists. What is in work is deleted by the caller.
	output, work string
}

// publishFromContinuousIntegration publishes into the registry that the workflow names,
// signed with the workflow's identity.
func publishFromContinuousIntegration(r repository, t tag) (err error) {
	registry := strings.ToLower(os.Getenv("REGISTRY"))
	if registry == "" {
		return errors.New("REGISTRY is not set: want a host and a path, such as ghcr.io/somebody")
	}
	if _, err := r.git("merge-base", "--is-ancestor", "HEAD", "origin/"+mainBranch); err != nil {
		return fmt.Errorf("%s is not on %s: %w", t, mainBranch, err)
	}
	p := publication{repository: r, tag: t, registry: registry, architectures: architectures(), output: r.output(t)}
	p.work = filepath.Join(p.output, "work")
	if err := os.MkdirAll(p.work, 0o755); err != nil {
		return fmt.Errorf("make room for a release: %w", err)
	}
	defer removeAll(p.work, &err)
	programs, err := findTools(r.root, p.work)
	if err != nil {
		return err
	}
	if p.signer, err = workflowIdentity(programs); err != nil {
		return err
	}
	if err := programs.login(registry, os.Getenv("REGISTRY_USER"), os.Getenv("REGISTRY_PASSWORD")); err != nil {
		return err
	}
	return p.publish()
}

// publish does the whole: the chart comes last, so where it is there, all is. Whoever
// was interrupted begins again; what is complete is never replaced.
func (p publication) publish() (err error) {
	if err := p.notPublished(); err != nil {
		return err
	}
	if p.commit, err = p.git("rev-parse", "HEAD"); err != nil {
		return err
	}
	if p.committed, err = p.committedAt(); err != nil {
		return err
	}
	index, images, err := p.pushImages()
	if err != nil {
		return err
	}
	say("signing %s", index)
	if err := p.sign(index.String()); err != nil {
		return err
	}
	for architecture, image := range images {
		list, err := p.writeList(image, architecture)
		if err != nil {
			return err
		}
		if err := p.attest(image.String(), "cyclonedx", list); err != nil {
			return err
		}
	}
	say("packaging the chart")
	file, err := p.packageChart(index)
	if err != nil {
		return err
	}
	chart, err := p.pushChart(file)
	if err != nil {
		return err
	}
	say("signing %s", chart)
	if err := p.sign(chart.String()); err != nil {
		return err
	}
	provenance, err := p.provenance()
	if err != nil {
		return err
	}
	for _, subject := range []reference{index, chart} {
		if err := p.attest(subject.String(), "slsaprovenance1", provenance); err != nil {
			return err
		}
	}
	return p.check(index, images, chart)
}

// notPublished fails where the chart is there, and where the registry does not say. One
// that has nothing of that name may deny it, as it denies what is private.
func (p publication) notPublished() error {
	_, err := p.run(p.crane, "digest", p.chartName()+":"+p.chartVersion())
	if err == nil {
		return fmt.Errorf("%s is published already: a release is never replaced; prepare another", p.tag)
	}
	for _, absent := range []string{"MANIFEST_UNKNOWN", "NAME_UNKNOWN", "DENIED", "404 Not Found"} {
		if strings.Contains(err.Error(), absent) {
			return nil
		}
	}
	return fmt.Errorf("find out whether %s is published: %w", p.tag, err)
}

// check verifies all as a user can.
func (p publication) check(index reference, images map[string]reference, chart reference) error {
	say("verifying signatures, lists and the chart")
	for _, subject := range []reference{index, chart} {
		if err := p.verify(subject.String()); err != nil {
			return err
		}
		if err := p.attested(subject.String(), "slsaprovenance1"); err != nil {
			return err
		}
	}
	for _, image := range images {
		if err := p.verify(image.String()); err != nil {
			return err
		}
		if err := p.attested(image.String(), "cyclonedx"); err != nil {
			return err
		}
	}
	return p.checkChart(index)
}

// pushImages pushes the image of each architecture, and the index that is the driver's
// image.
func (p publication) pushImages() (index reference, images map[string]reference, err error) {
	name := p.registry + "/" + p.driver
	images = make(map[string]reference)
	arguments := []string{"index", "append", "--tag", name + ":" + p.version}
	for _, architecture := range p.architectures {
		layout := filepath.Join(p.work, "layout-"+architecture)
		if err := os.MkdirAll(layout, 0o755); err != nil {
			return reference{}, nil, fmt.Errorf("unpack an image: %w", err)
		}
		if _, err := p.run("tar", "--extract", "--file", archive(p.output, architecture), "--directory", layout); err != nil {
			return reference{}, nil, err
		}
		say("pushing the image for %s", architecture)
		pushed, err := p.run(p.crane, "push", layout, name+":"+p.version+"-"+architecture)
		if err != nil {
			return reference{}, nil, err
		}
		if images[architecture], err = parseReference(pushed); err != nil {
			return reference{}, nil, err
		}
		arguments = append(arguments, "--manifest", pushed)
	}
	if _, err := p.run(p.crane, arguments...); err != nil {
		return reference{}, nil, err
	}
	digest, err := p.run(p.crane, "digest", name+":"+p.version)
	if err != nil {
		return reference{}, nil, err
	}
	index, err = parseReference(name + "@" + digest)
	return index, images, err
}

// provenance says what the release was built from and by which run, as SLSA's version 1
// has it. Whoever signs it vouches for it.
func (p publication) provenance() (string, error) {
	statement := map[string]any{
		"buildDefinition": map[string]any{
			"buildType":          "https://liken.sh/release/v1",
			"externalParameters": map[string]any{"source": source(), "tag": p.String()},
			"resolvedDependencies": []map[string]any{{
				"uri": "git+" + source() + "@refs/tags/" + p.String(), "digest": map[string]string{"gitCommit": p.commit},
			}},
		},
		"runDetails": map[string]any{
			"builder":  map[string]any{"id": workflow()},
			"metadata": map[string]any{"invocationId": source() + "/actions/runs/" + os.Getenv("GITHUB_RUN_ID") + "/attempts/" + os.Getenv("GITHUB_RUN_ATTEMPT")},
		},
	}
	text, err := json.MarshalIndent(statement, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode the provenance: %w", err)
	}
	file := filepath.Join(p.work, "provenance.json")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return "", fmt.Errorf("write the provenance: %w", err)
	}
	return file, nil
}

// removeAll deletes what a command kept while it worked, and adds to its error.
func removeAll(dir string, err *error) { *err = errors.Join(*err, os.RemoveAll(dir)) }
