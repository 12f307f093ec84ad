package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"liken.sh/csicommon/csitest/apiserver"
)

// installPage has the ClusterRole; the chart's is compared with it where the
// chart is tested.
const installPage = "../../docs/install.md"

// permission is what RBAC grants or a request needs: a verb on a resource, of one
// name or of any.
type permission struct{ verb, resource, name string }

func (p permission) covers(request apiserver.Request) bool {
	return p.verb == request.Verb && p.resource == request.Resource && (p.name == "" || p.name == request.Name)
}

// granted are the permissions of the ClusterRole that the documentation has.
func granted(t *testing.T) []permission {
	t.Helper()
	page, err := os.ReadFile(installPage)
	if err != nil {
		t.Fatal(err)
	}
	manifest := regexp.MustCompile("(?ms)^kind: ClusterRole\n.*?^rules:\n.*?^---$").FindString(string(page))
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(strings.TrimSuffix(manifest, "---")), &role); err != nil {
		t.Fatal(err)
	}
	var all []permission
	for _, rule := range role.Rules {
		if !slices.Equal(rule.APIGroups, []string{""}) || len(rule.NonResourceURLs) > 0 {
			t.Fatalf("the rule %+v is not of the core group", rule)
		}
		for _, verb := range rule.Verbs {
			for _, resource := range rule.Resources {
				for _, name := range append(rule.ResourceNames, "")[:max(1, len(rule.ResourceNames))] {
					all = append(all, permission{verb, resource, name})
				}
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no ClusterRole", installPage)
	}
	return all
}

// The plugin asks for nothing that the ClusterRole does not grant, and the
// ClusterRole grants nothing that it does not ask for.
func TestTheClusterRoleIsWhatThePluginCalls(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.start(sweepSoon...)
	n.mustPublish("h1", 1)
	await(t, "a watch", func() bool { return n.api.Count("watch", "persistentvolumes") > 0 })
	// An Event is looked for and created, and then counted up.
	for _, event := range []string{"pod-2 PerNodeVolumeHeld 1", "pod-2 PerNodeVolumeHeld 2"} {
		wantCode(t, n.publish(volume("h1"), pod(2)), codes.FailedPrecondition)
		n.awaitEvents("default", event)
	}
	n.mustUnpublish("h1", 1)
	n.api.DeleteVolume("h1")
	n.awaitRemoval("h1")
	n.plugin.stop()

	role := granted(t)
	used := make(map[permission]bool)
	for _, request := range n.api.Requests() {
		i := slices.IndexFunc(role, func(p permission) bool { return p.covers(request) })
		if i < 0 {
			t.Errorf("the plugin makes a request that is not granted: %+v", request)
			continue
		}
		used[role[i]] = true
	}
	for _, p := range role {
		if !used[p] {
			t.Errorf("granted and never used: %+v", p)
		}
	}
}
