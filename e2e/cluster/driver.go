package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liken.sh/e2e/page"
)

// Driver is what a driver's tests say of it. Its page install.md, as all such pages,
// tells how to install it below "With Helm", and below "Check it" how to see that it is.
type Driver struct {
	// Name is that in CSI.
	Name string
	// Namespace and Release are what the page's commands install, from the chart of the
	// release's name, and DaemonSet what the plugin's pods are then of.
	Namespace, Release, DaemonSet string
	// Docs are its pages, below the repository's root.
	Docs string
	// Kube is the cluster, once Run has connected to it.
	Kube *Cluster
}

// Label is on everything that the driver's tests make in the whole cluster's scope, so
// that what a run that was cut off left behind is found.
func (d *Driver) Label() string { return "e2e-" + d.Release }

// Install runs the commands of the page, in place of what is installed.
func (d *Driver) Install() error {
	if err := d.Uninstall(); err != nil {
		return err
	}
	commands, err := page.Blocks(filepath.Join(d.Kube.root, d.Docs, "install.md"), "With Helm", "sh")
	if err != nil {
		return err
	}
	_, err = d.Kube.Shell(commands[0])
	return err
}

// Uninstall also removes the namespace, which the page's commands make. Volumes that a run
// left behind which was cut off do not keep it from that.
func (d *Driver) Uninstall() error {
	if _, err := d.Kube.Try("", "helm", "uninstall", d.Release, "--namespace", d.Namespace, "--ignore-not-found", "--wait", "--no-hooks"); err != nil {
		return err
	}
	_, err := d.Kube.Try("", "kubectl", "delete", "namespace", d.Namespace, "--ignore-not-found")
	return err
}

// ClearAway deletes what tests made, and waits for it to go. Pods can end only while
// there is a plugin.
func (d *Driver) ClearAway() error {
	for _, kind := range []string{"namespaces", "persistentvolumes", "volumeattributesclasses"} {
		if _, err := d.Kube.Try("", "kubectl", "delete", kind, "--selector", d.Label(), "--timeout=3m"); err != nil {
			return err
		}
	}
	return nil
}

// Upgrade is helm's, and waits until the new plugins are ready.
func (d *Driver) Upgrade(t testing.TB, arguments ...string) {
	t.Helper()
	d.Kube.Run(t, append([]string{"helm", "upgrade", d.Release, "charts/" + d.Release, "--namespace", d.Namespace,
		"--reset-then-reuse-values", "--wait", "--timeout", "5m"}, arguments...)...)
}

// Rollback is helm's, to what Run installed.
func (d *Driver) Rollback(t testing.TB) {
	t.Helper()
	d.Kube.Run(t, "helm", "rollback", d.Release, "1", "--namespace", d.Namespace, "--wait", "--timeout", "5m")
}

// Block is one of a page's, which has to have it.
func (d *Driver) Block(t testing.TB, file, under, language string, index int) string {
	t.Helper()
	blocks, err := page.Blocks(filepath.Join(d.Kube.root, d.Docs, file), under, language)
	if err != nil {
		t.Fatal(err)
	}
	if index >= len(blocks) {
		t.Fatalf("%s has %d blocks of %s below %q, want one more", file, len(blocks), language, under)
	}
	return blocks[index]
}

// Plugin is the driver's ready pod on the node, or what there is in its place.
func (d *Driver) Plugin(ctx context.Context, node string) (*corev1.Pod, error) {
	pods, err := d.Kube.Client.CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName=" + node,
		// A controller is no plugin, nor is a webhook.
		LabelSelector: "app.kubernetes.io/name=" + d.Release + ",app.kubernetes.io/component notin (controller,webhook)",
	})
	if err != nil {
		return nil, err
	}
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			return &pod, d.Kube.Ready(ctx, d.Namespace, pod.Name)
		}
	}
	return nil, errors.New("no pod of the driver is on " + node)
}

// PluginRuns waits for the driver's pod on the node.
func (d *Driver) PluginRuns(t *testing.T, node string) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	Eventually(t, Patient, "the plugin runs on "+node, func() (err error) {
		found, err = d.Plugin(t.Context(), node)
		return err
	})
	return found
}

// RestartPlugin deletes the driver's pod on the node, and waits for the next. Tests
// that run at the same time may do so too.
func (d *Driver) RestartPlugin(t *testing.T, node string) {
	t.Helper()
	before := d.PluginRuns(t, node)
	d.Kube.Run(t, "kubectl", "--namespace", d.Namespace, "delete", "pod", before.Name, "--ignore-not-found")
	if after := d.PluginRuns(t, node); after.UID == before.UID {
		t.Fatal("the driver's pod is the same")
	}
}

// StopPlugin leaves the node without the driver's pod until start is called, or the test
// ends.
func (d *Driver) StopPlugin(t *testing.T, node string) (start func()) {
	t.Helper()
	started := false
	start = func() {
		if !started {
			started = true
			d.Rollback(t)
		}
	}
	t.Cleanup(start)
	d.Upgrade(t, "--set-json", fmt.Sprintf(`affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
		{"nodeSelectorTerms":[{"matchExpressions":[{"key":%q,"operator":"NotIn","values":[%q]}]}]}}}`, corev1.LabelHostname, node))
	Eventually(t, Soon, node+" has no plugin", func() error {
		if pod, err := d.Plugin(t.Context(), node); pod != nil {
			return fmt.Errorf("it has %s (%w)", pod.Name, err)
		}
		return nil
	})
	return start
}

// Listed fails unless every node's CSINode has the driver.
func (d *Driver) Listed(t *testing.T) {
	t.Helper()
	for _, name := range d.Kube.Nodes {
		Eventually(t, Soon, name+" lists "+d.Name, func() error {
			node, err := d.Kube.Client.StorageV1().CSINodes().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, listed := range node.Spec.Drivers {
				if listed.Name == d.Name && listed.NodeID == name {
					return nil
				}
			}
			return fmt.Errorf("it lists %v", node.Spec.Drivers)
		})
	}
}

// Checked goes through what the page tells to check.
func (d *Driver) Checked(t *testing.T) {
	t.Helper()
	d.Listed(t)
	said := d.Kube.MustShell(t, d.Block(t, "install.md", "Check it", "sh", 0))
	for _, name := range d.Kube.Nodes {
		if !LineHas(said, name, d.Name) {
			t.Errorf("no line has %s and %s:\n%s", name, d.Name, said)
		}
		ask := strings.Replace(d.Block(t, "install.md", "Check it", "sh", 1), "POD", d.PluginRuns(t, name).Name, 1)
		if said := d.Kube.MustShell(t, ask); !strings.HasSuffix(strings.TrimSpace(said), "ok") {
			t.Errorf("the plugin of %s answers %q", name, said)
		}
	}
}

// LineHas tells whether a line of the text has all the words.
func LineHas(text string, words ...string) bool {
lines:
	for line := range strings.Lines(text) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue lines
			}
		}
		return true
	}
	return false
}

// ReportFailure shows the state of the namespaces and the plugin when the test fails.
func (d *Driver) ReportFailure(t *testing.T, namespaces ...string) {
	t.Cleanup(func() {
		d.Kube.ReportFailure(t, namespaces,
			"get pods --output wide --namespace "+d.Namespace,
			"logs daemonset/"+d.DaemonSet+" --all-pods --prefix --tail 300 --namespace "+d.Namespace)
	})
}
