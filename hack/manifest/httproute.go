package manifest

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HTTPRoute is as much of the Gateway API's as the charts use. It is written out here, since
// that API's module would bring a version of Kubernetes's own.
type HTTPRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              HTTPRouteSpec `json:"spec"`
}

// HTTPRouteSpec says which requests of which gateways go where.
type HTTPRouteSpec struct {
	ParentRefs []ParentReference `json:"parentRefs"`
	Hostnames  []string          `json:"hostnames,omitempty"`
	Rules      []HTTPRouteRule   `json:"rules"`
}

// ParentReference names a gateway, and one of its listeners.
type ParentReference struct {
	Name        string `json:"name"`
	Namespace   string `json:"namespace,omitempty"`
	SectionName string `json:"sectionName,omitempty"`
}

// HTTPRouteRule sends what matches to Services.
type HTTPRouteRule struct {
	Matches     []HTTPRouteMatch `json:"matches"`
	BackendRefs []BackendRef     `json:"backendRefs"`
}

// HTTPRouteMatch is a request's path and method.
type HTTPRouteMatch struct {
	Path struct {
		Type  string `json:"type"`
		Value string `json:"value"`
	} `json:"path"`
	Method string `json:"method,omitempty"`
}

// BackendRef is a Service's port.
type BackendRef struct {
	Name string `json:"name"`
	Port int    `json:"port"`
}
