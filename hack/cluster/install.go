package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// install installs the drivers that the cluster does not have, by their charts, as their
// pages do. One that somebody installed, however, is left as it is.
func (p *program) install() error {
	if err := p.controlRuns(); err != nil {
		return err
	}
	missing, err := p.notInstalled()
	if err != nil || len(missing) == 0 {
		return err
	}
	if slices.ContainsFunc(missing, driver.hasController) {
		if err := p.haveSidecars(); err != nil {
			return err
		}
	}
	if err := p.haveImages(missing); err != nil {
		return err
	}
	for _, d := range missing {
		say("installing " + d.csi)
		if err := p.installChart(d); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) notInstalled() ([]driver, error) {
	text, err := p.kubectl("get", "csidrivers", "--output=name")
	if err != nil {
		return nil, err
	}
	there := strings.Fields(text)
	var missing []driver
	for _, d := range drivers() {
		if !d.isAmong(there) {
			missing = append(missing, d)
		}
	}
	return missing, nil
}

// isAmong looks for the driver in what kubectl names.
func (d driver) isAmong(objects []string) bool {
	for _, object := range objects {
		if object == "csidriver.storage.k8s.io/"+d.csi {
			return true
		}
	}
	return false
}

// haveImages builds those that were never built. Others are in the nodes already.
func (p *program) haveImages(wanted []driver) error {
	var names []string
	for _, d := range wanted {
		if _, err := os.Stat(filepath.Join(p.cluster.Images(), d.name+".tar")); err != nil {
			names = append(names, d.name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return p.images(names)
}

func (p *program) installChart(d driver) error {
	_, tag, _ := strings.Cut(d.image, ":")
	helm := exec.Command(filepath.Join(p.root, "bin/helm"), "install", d.name, filepath.Join(p.root, "charts", d.name),
		"--namespace", d.namespace, "--create-namespace", "--set", "image.tag="+tag, "--wait", "--timeout", "5m")
	helm.Env = append(os.Environ(), "KUBECONFIG="+p.cluster.Kubeconfig())
	if output, err := helm.CombinedOutput(); err != nil {
		return fmt.Errorf("install the chart %s: %w: %s", d.name, err, strings.TrimSpace(string(output)))
	}
	return nil
}
