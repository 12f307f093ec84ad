package charts

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"liken.sh/hack/manifest"
)

const withWebhook = "webhook: {enabled: true, namespaces: [shop, blog]}"

// controllerPod is that of the git driver's controller.
func controllerPod(t *testing.T, values string) corev1.PodTemplateSpec {
	t.Helper()
	return deployment(t, called(t, "gitvolume").rendered(t, values), "controller").Spec.Template
}

// deployment is the one whose pods are the component, such as controller.
func deployment(t *testing.T, all []metav1.Object, component string) *appsv1.Deployment {
	t.Helper()
	for _, d := range find[*appsv1.Deployment](all) {
		if d.Spec.Template.Labels["app.kubernetes.io/component"] == component {
			return d
		}
	}
	t.Fatalf("there is no Deployment of the %s", component)
	return nil
}

// The profile "restricted" of the Pod Security Standards lets the pods in.
func TestTheControllerIsRestricted(t *testing.T) {
	t.Parallel()
	c := called(t, "gitvolume")
	for name, values := range map[string]string{"default": "", "webhook": withWebhook, "full": c.full(t)} {
		pods := map[string]corev1.PodSpec{}
		for _, d := range find[*appsv1.Deployment](c.rendered(t, values)) {
			pods[d.Name] = d.Spec.Template.Spec
		}
		for _, job := range find[*batchv1.Job](c.rendered(t, values)) {
			pods["check"] = job.Spec.Template.Spec
		}
		for which, pod := range pods {
			if pod.HostNetwork || pod.HostPID || pod.HostIPC {
				t.Errorf("%s, %s: it shares a namespace with the node", name, which)
			}
			all := pod.SecurityContext
			if all == nil || all.RunAsNonRoot == nil || !*all.RunAsNonRoot || all.RunAsUser == nil || *all.RunAsUser == 0 ||
				all.SeccompProfile == nil || all.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s, %s: the pod is %+v", name, which, all)
			}
			for _, volume := range pod.Volumes {
				if volume.EmptyDir == nil {
					t.Errorf("%s, %s: volume %q is not the pod's own", name, which, volume.Name)
				}
			}
			for _, container := range pod.Containers {
				own := container.SecurityContext
				if own == nil || own.AllowPrivilegeEscalation == nil || *own.AllowPrivilegeEscalation || own.Privileged != nil ||
					own.ReadOnlyRootFilesystem == nil || !*own.ReadOnlyRootFilesystem ||
					own.Capabilities == nil || !slices.Equal(own.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(own.Capabilities.Add) > 0 {
					t.Errorf("%s, %s: container %s is %+v", name, which, container.Name, own)
				}
			}
		}
	}
}

// The two sidecars talk to the controller by its socket, and of several pods one does.
func TestTheControllersContainers(t *testing.T) {
	t.Parallel()
	pod := controllerPod(t, "").Spec
	var names []string
	for _, container := range pod.Containers {
		names = append(names, container.Name)
		if len(container.VolumeMounts) != 1 || container.VolumeMounts[0].MountPath != "/csi" {
			t.Errorf("%s mounts %+v", container.Name, container.VolumeMounts)
		}
		if container.LivenessProbe == nil {
			t.Errorf("%s has no liveness probe", container.Name)
		}
		if container.Name == "controller" {
			continue
		}
		for _, want := range []string{"--csi-address=/csi/csi.sock", "--leader-election", "--leader-election-namespace=gitvolume"} {
			if !slices.Contains(container.Args, want) {
				t.Errorf("%s is started with %q, which lacks %s", container.Name, container.Args, want)
			}
		}
	}
	if !slices.Equal(names, []string{"controller", "resizer", "provisioner"}) {
		t.Errorf("the containers are %q", names)
	}
}

func TestTheControllersArguments(t *testing.T) {
	t.Parallel()
	c := called(t, "gitvolume")
	flags := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)[^`|]*` \\|").FindAllStringSubmatch(readFile(t, c.docs, "reference/controller.md"), -1) {
		flags[row[1]] = false
	}
	for _, d := range slices.Concat(find[*appsv1.Deployment](c.rendered(t, "")), find[*appsv1.Deployment](c.rendered(t, c.full(t)))) {
		component := d.Spec.Template.Labels["app.kubernetes.io/component"]
		arguments := d.Spec.Template.Spec.Containers[0].Args
		if arguments[0] != "controller" {
			t.Errorf("it is started as %q", arguments)
		}
		for _, argument := range arguments[1:] {
			name, _, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
			if _, is := flags[name]; !is {
				t.Errorf("%q is no flag of the controller", argument)
			}
			flags[name] = true
			if name == "kubeconfig" || name == "version" { // the extra ones
				continue
			}
			value := component + ".extraArgs: --" + name + " is set by another value"
			if _, err := c.template(t, component+": {extraArgs: ['"+argument+"']}"); err == nil || !strings.Contains(err.Error(), value) {
				t.Errorf("extraArgs with %s: %v", argument, err)
			}
		}
	}
	for name, isGiven := range flags {
		if !isGiven && name != "version" {
			t.Errorf("--%s cannot be set by a value", name)
		}
	}
}

// rulesInDocs are those of a kind of role on the controller's page, with which the driver's
// own test compares what the controller asks the API server.
func rulesInDocs(t *testing.T, kind string) []rbacv1.PolicyRule {
	t.Helper()
	page := readFile(t, called(t, "gitvolume").docs, "reference/controller.md")
	text := regexp.MustCompile("(?ms)^apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\n.*?^(?:---|```)$").FindString(page)
	var role struct {
		Rules []rbacv1.PolicyRule `json:"rules"`
	}
	if err := yaml.Unmarshal([]byte(strings.TrimRight(text, "-`\n")), &role); err != nil {
		t.Fatal(err)
	}
	if len(role.Rules) == 0 {
		t.Fatalf("the page has no %s", kind)
	}
	return role.Rules
}

func TestTheControllersRoles(t *testing.T) {
	t.Parallel()
	all := called(t, "gitvolume").rendered(t, withWebhook)
	role := named[*rbacv1.ClusterRole](t, all, "gitvolume-webhook")
	if want := rulesInDocs(t, "ClusterRole"); !reflect.DeepEqual(role.Rules, want) {
		t.Errorf("the chart grants\n%+v\nthe page\n%+v", role.Rules, want)
	}
	var namespaces []string
	for _, role := range find[*rbacv1.Role](all) {
		if role.Name != "gitvolume-webhook" {
			continue
		}
		namespaces = append(namespaces, role.Namespace)
		if want := rulesInDocs(t, "Role"); !reflect.DeepEqual(role.Rules, want) {
			t.Errorf("in %s the chart grants\n%+v\nthe page\n%+v", role.Namespace, role.Rules, want)
		}
	}
	if !slices.Equal(namespaces, []string{"shop", "blog"}) {
		t.Errorf("Secrets are read in %q", namespaces)
	}
	for _, binding := range find[*rbacv1.RoleBinding](all) {
		// Each is named after the pods that it is for.
		if subject := binding.Subjects[0]; len(binding.Subjects) != 1 || subject.Name != binding.Name || subject.Namespace != "gitvolume" || binding.RoleRef.Name != binding.Name {
			t.Errorf("the binding in %s is %+v", binding.Namespace, binding)
		}
	}
}

// Who is called from outside has the rights that it needs and no other, and has them alone.
func TestTheWebhooksRights(t *testing.T) {
	t.Parallel()
	all := called(t, "gitvolume").rendered(t, withWebhook)
	pod := deployment(t, all, "webhook").Spec.Template.Spec
	if pod.ServiceAccountName != "gitvolume-webhook" || controllerPod(t, withWebhook).Spec.ServiceAccountName == pod.ServiceAccountName {
		t.Errorf("it runs as %q", pod.ServiceAccountName)
	}
	var bound []string
	for _, binding := range find[*rbacv1.ClusterRoleBinding](all) {
		if binding.Subjects[0].Name == pod.ServiceAccountName {
			bound = append(bound, binding.RoleRef.Name)
		}
	}
	for _, binding := range find[*rbacv1.RoleBinding](all) {
		if binding.Subjects[0].Name == pod.ServiceAccountName {
			bound = append(bound, binding.Namespace+"/"+binding.RoleRef.Name)
		}
	}
	if !slices.Equal(bound, []string{"gitvolume-webhook", "shop/gitvolume-webhook", "blog/gitvolume-webhook"}) {
		t.Errorf("it has the roles %q", bound)
	}
	if args := pod.Containers[0].Args; len(pod.Containers) != 1 || !slices.Contains(args, "--endpoint=") || !slices.Contains(args, "--webhook=:8080") {
		t.Errorf("its containers are %+v", pod.Containers)
	}
}

// Nobody may read Secrets of the whole cluster, or of a namespace that is not listed, and
// nobody may do everything.
func TestNoGrantForAllSecrets(t *testing.T) {
	t.Parallel()
	c := called(t, "gitvolume")
	for _, values := range []string{"", withWebhook, c.full(t) + "\nrbac: {create: true}"} {
		all := c.rendered(t, values)
		rules := map[string][]rbacv1.PolicyRule{}
		for _, role := range find[*rbacv1.ClusterRole](all) {
			rules["ClusterRole "+role.Name] = role.Rules
		}
		for _, role := range find[*rbacv1.Role](all) {
			if role.Namespace == "gitvolume" {
				rules["Role "+role.Name] = role.Rules
			}
		}
		if len(rules) < 4 {
			t.Fatalf("there are only the roles %v", rules)
		}
		for name, granted := range rules {
			for _, rule := range granted {
				for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
					if word == "*" || word == "secrets" {
						t.Errorf("%s grants %+v", name, rule)
					}
				}
			}
		}
	}
}

func TestWithoutAWebhookNothingIsServedAndNoSecretRead(t *testing.T) {
	t.Parallel()
	all := called(t, "gitvolume").rendered(t, "webhook: {namespaces: [shop]}\nuninstallCheck: false")
	if services, roles := find[*corev1.Service](all), find[*rbacv1.Role](all); len(services) != 0 || len(roles) != 1 {
		t.Errorf("there are %d Services and %d Roles", len(services), len(roles))
	}
	for _, role := range find[*rbacv1.ClusterRole](all) {
		if role.Name == "gitvolume-controller" {
			t.Errorf("the controller may do %+v", role.Rules)
		}
	}
	pod := only[*appsv1.Deployment](t, all).Spec.Template.Spec
	if !slices.Contains(pod.Containers[0].Args, "--webhook=") || len(pod.Containers[0].Ports) != 1 {
		t.Errorf("the controller is %+v", pod.Containers[0])
	}
}

// What forges call leads to a port of the controller's pods and nowhere else.
func TestTheWayOfAForge(t *testing.T) {
	t.Parallel()
	c := called(t, "gitvolume")
	all := c.rendered(t, c.full(t))
	pod := deployment(t, all, "webhook").Spec.Template
	service := only[*corev1.Service](t, all)
	for key, value := range service.Spec.Selector {
		if pod.Labels[key] != value {
			t.Errorf("the Service selects %v, the pods are %v", service.Spec.Selector, pod.Labels)
		}
	}
	node := only[*appsv1.DaemonSet](t, all).Spec.Template.Labels
	if node["app.kubernetes.io/component"] == service.Spec.Selector["app.kubernetes.io/component"] {
		t.Errorf("the Service selects the plugin's pods too: %v", node)
	}
	ports := map[string]int32{}
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			ports[port.Name] = port.ContainerPort
		}
	}
	if target := service.Spec.Ports[0].TargetPort.StrVal; ports[target] != 18080 || service.Spec.Ports[0].Port != 8000 {
		t.Errorf("the Service leads from %d to %q of %v", service.Spec.Ports[0].Port, target, ports)
	}
	ingress := only[*networkingv1.Ingress](t, all)
	path := ingress.Spec.Rules[0].HTTP.Paths[0]
	if path.Path != "/webhook/" || path.Backend.Service.Name != service.Name || path.Backend.Service.Port.Name != service.Spec.Ports[0].Name ||
		ingress.Spec.Rules[0].Host != "hooks.example.com" || ingress.Spec.TLS[0].SecretName != "hooks-tls" || *ingress.Spec.IngressClassName != "nginx" {
		t.Errorf("the Ingress is %+v", ingress.Spec)
	}
	route := only[*manifest.HTTPRoute](t, all)
	if backend := route.Spec.Rules[0].BackendRefs[0]; backend.Name != service.Name || backend.Port != 8000 ||
		route.Spec.Rules[0].Matches[0].Path.Value != "/webhook/" || route.Spec.ParentRefs[0].Name != "public" {
		t.Errorf("the route is %+v", route.Spec)
	}
	policy := only[*networkingv1.NetworkPolicy](t, all).Spec
	if !reflect.DeepEqual(policy.PodSelector.MatchLabels, service.Spec.Selector) || len(policy.Ingress) != 2 ||
		len(policy.Ingress[0].From) != 1 || policy.Ingress[0].Ports[0].Port.StrVal != "webhook" {
		t.Errorf("the NetworkPolicy is %+v", policy)
	}
	for _, rule := range policy.Ingress {
		for _, port := range rule.Ports {
			if _, is := ports[port.Port.StrVal]; !is {
				t.Errorf("the NetworkPolicy lets in to %q, the ports are %v", port.Port.StrVal, ports)
			}
		}
	}
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	c := called(t, "gitvolume")
	for values, want := range map[string][]string{
		"": nil, "controller: {replicas: 0}": nil, "controller: {replicas: 2}": {"controller"}, "webhook: {replicas: 2}": nil, withWebhook: nil,
		"webhook: {enabled: true, namespaces: [shop], replicas: 2}": {"webhook"},
	} {
		all := c.rendered(t, values)
		var budgets, spread []string
		for _, budget := range find[*policyv1.PodDisruptionBudget](all) {
			budgets = append(budgets, budget.Spec.Selector.MatchLabels["app.kubernetes.io/component"])
		}
		for _, d := range find[*appsv1.Deployment](all) {
			for _, constraint := range d.Spec.Template.Spec.TopologySpreadConstraints {
				spread = append(spread, constraint.LabelSelector.MatchLabels["app.kubernetes.io/component"])
			}
		}
		if !slices.Equal(budgets, want) || !slices.Equal(spread, want) {
			t.Errorf("%q: budgets of %q and constraints of %q", values, budgets, spread)
		}
	}
}

// The check runs before anything is removed, as who may list volumes.
func TestTheUninstallationIsChecked(t *testing.T) {
	t.Parallel()
	c := called(t, "gitvolume")
	all := c.rendered(t, "")
	job := only[*batchv1.Job](t, all)
	pod := job.Spec.Template.Spec
	if job.Annotations["helm.sh/hook"] != "pre-delete" || *job.Spec.BackoffLimit != 0 || !slices.Equal(pod.Containers[0].Args, []string{"uninstall-check"}) {
		t.Errorf("the Job is %+v", job)
	}
	if accounts := find[*corev1.ServiceAccount](all); !slices.ContainsFunc(accounts, func(a *corev1.ServiceAccount) bool { return a.Name == pod.ServiceAccountName }) {
		t.Errorf("the Job runs as %s", pod.ServiceAccountName)
	}
	rules := named[*rbacv1.ClusterRole](t, all, "gitvolume-controller").Rules
	if len(rules) != 1 || !slices.Equal(rules[0].Verbs, []string{"list"}) {
		t.Errorf("without a webhook the controller may do %+v", rules)
	}
	if jobs := find[*batchv1.Job](c.rendered(t, "uninstallCheck: false")); len(jobs) != 0 {
		t.Errorf("there are %d Jobs", len(jobs))
	}
}

func TestExampleClasses(t *testing.T) {
	t.Parallel()
	c := called(t, "gitvolume")
	if classes := find[*storagev1.VolumeAttributesClass](c.rendered(t, "")); len(classes) != 0 {
		t.Errorf("by default there are %d classes", len(classes))
	}
	classes := find[*storagev1.VolumeAttributesClass](c.rendered(t, "exampleClasses: {create: true}"))
	readme, reference := readFile(t, c.dir(), "README.md"), readFile(t, c.docs, "reference/class.md")
	for _, class := range classes {
		if class.DriverName != c.driver || len(class.Parameters) == 0 || !strings.Contains(readme, "`"+class.Name+"`") {
			t.Errorf("class %s is %+v", class.Name, class)
		}
		for name := range class.Parameters {
			if !strings.Contains(reference, "| `"+name+"` |") {
				t.Errorf("class %s has the parameter %s", class.Name, name)
			}
		}
	}
	if len(classes) != 3 {
		t.Errorf("there are %d classes", len(classes))
	}
}

func TestControllerValuesThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values string
		words  []string
	}{
		"a webhook of nowhere":       {"webhook: {enabled: true}", []string{"webhook.namespaces", "{shop}"}},
		"a namespace that is none":   {"webhook: {namespaces: [shop.example]}", []string{"/webhook/namespaces/0", "pattern"}},
		"one namespace":              {"webhook: {namespaces: shop}", []string{"/webhook/namespaces", "want array"}},
		"an Ingress of no host":      {"webhook: {ingress: {enabled: true}}", []string{"webhook.ingress.host"}},
		"a route of no gateway":      {"webhook: {httpRoute: {enabled: true}}", []string{"webhook.httpRoute.gateways"}},
		"an Ingress to nothing":      {"webhook: {ingress: {enabled: true, host: a.example.com}}", []string{"webhook.ingress.enabled", "set webhook.enabled"}},
		"a route to nothing":         {"webhook: {httpRoute: {enabled: true, gateways: [{name: public}]}}", []string{"webhook.httpRoute.enabled", "set webhook.enabled"}},
		"a policy for nothing":       {"webhook: {networkPolicy: {enabled: true}}", []string{"webhook.networkPolicy.enabled", "set webhook.enabled"}},
		"a gateway by its name":      {"webhook: {httpRoute: {gateways: [public]}}", []string{"/webhook/httpRoute/gateways/0", "want object"}},
		"a peer that is none":        {"webhook: {networkPolicy: {from: [{namespace: x}]}}", []string{"/webhook/networkPolicy/from/0"}},
		"two servers on one port":    {"webhook: {port: 9200}", []string{"9200", "webhook.port", "httpPort"}},
		"a sidecar's socket":         {"controller: {resizer: {extraArgs: ['--csi-address=/x']}}", []string{"controller.resizer.extraArgs: --csi-address is set by"}},
		"a sidecar's without leader": {"controller: {provisioner: {extraArgs: ['--leader-election=false']}}", []string{"controller.provisioner.extraArgs: --leader-election is set by"}},
		"half a pod":                 {"controller: {replicas: 0.5}", []string{"/controller/replicas"}},
		"a Service without a type":   {"webhook: {service: {type: None}}", []string{"/webhook/service/type"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			called(t, "gitvolume").wantRefused(t, test.values, test.words)
		})
	}
}

// The local cluster builds what the chart asks for.
func TestTheSidecarsAreThoseOfTheLocalCluster(t *testing.T) {
	t.Parallel()
	pod := controllerPod(t, "").Spec
	for i, set := range []string{"resizer", "provisioner"} {
		pinned := regexp.MustCompile(`(?m)github.com/kubernetes-csi/external-` + set + `/v[0-9]+ (v\S+)`).
			FindStringSubmatch(readFile(t, "../cluster/build", set, "go.mod"))
		if pinned == nil {
			t.Fatalf("no version of the %s is pinned", set)
		}
		if want := "registry.k8s.io/sig-storage/csi-" + set + ":" + pinned[1]; pod.Containers[i+1].Image != want {
			t.Errorf("the chart runs %s, the local cluster has %s", pod.Containers[i+1].Image, want)
		}
	}
}
