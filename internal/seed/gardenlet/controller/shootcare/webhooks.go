package shootcare

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

const (
	// longestTimeout is the maximum timeout of a webhook for critical resources whose failure is ignored,
	// longestForLeases that of any webhook for Leases in kube-system. Both are in seconds, as in Gardener.
	longestTimeout   = 15
	longestForLeases = 3
)

// Labels of the critical namespaces and objects.
var (
	systemNamespace = labels.Set{constants.ShootNoCleanup: "true", constants.GardenerPurpose: metav1.NamespaceSystem,
		corev1.LabelMetadataName: metav1.NamespaceSystem}
	defaultNamespace = labels.Set{corev1.LabelMetadataName: metav1.NamespaceDefault}
	systemPods       = labels.Set{constants.ShootNoCleanup: "true", "origin": resourcesv1alpha1.GardenerManager}
)

// target is a resource that is critical when a cluster wakes up or has new nodes.
type target struct {
	group, version, resource string
	// namespace and object are the labels of the critical objects and their namespaces; nil matches any.
	namespace, object labels.Set
	clusterScoped     bool
}

// criticalResources lists the critical resources: those that nodes, the control plane and the system components need to come up,
// and that must not depend on a webhook. A subresource, after a slash, is a separate entry.
var criticalResources = slices.Concat(
	in(systemNamespace, systemPods, "", "v1", "pods", "pods/status"),
	in(systemNamespace, nil, "", "v1", "configmaps", "endpoints", "secrets", "serviceaccounts", "services", "services/status"),
	in(defaultNamespace, nil, "", "v1", "endpoints", "services", "services/status"),
	everywhere(nil, "", "v1", "nodes", "nodes/status"),
	everywhere(systemNamespace, "", "v1", "namespaces", "namespaces/status"),
	in(systemNamespace, nil, "apps", "v1", "controllerrevisions", "daemonsets", "daemonsets/status", "deployments",
		"deployments/scale", "replicasets", "replicasets/status", "replicasets/scale"),
	in(nil, nil, "coordination.k8s.io", "v1", "leases"),
	in(systemNamespace, nil, "networking.k8s.io", "v1", "networkpolicies"),
	everywhere(nil, "rbac.authorization.k8s.io", "v1", "clusterroles", "clusterrolebindings"),
	in(systemNamespace, nil, "rbac.authorization.k8s.io", "v1", "roles", "rolebindings"),
	everywhere(nil, "apiextensions.k8s.io", "v1", "customresourcedefinitions", "customresourcedefinitions/status"),
	everywhere(nil, "apiregistration.k8s.io", "v1", "apiservices", "apiservices/status"),
	everywhere(nil, "certificates.k8s.io", "v1", "certificatesigningrequests", "certificatesigningrequests/status",
		"certificatesigningrequests/approval"),
	everywhere(nil, "scheduling.k8s.io", "v1", "priorityclasses"),
)

// leases are the resources for leader election.
var leases = in(systemNamespace, labels.Set{}, "coordination.k8s.io", "v1", "leases")

func in(namespace, object labels.Set, group, version string, resources ...string) (all []target) {
	for _, resource := range resources {
		all = append(all, target{group, version, resource, namespace, object, false})
	}
	return all
}

func everywhere(object labels.Set, group, version string, resources ...string) (all []target) {
	for _, resource := range resources {
		t := target{group, version, resource, nil, object, true}
		if strings.HasPrefix(resource, "namespaces") {
			t.namespace = object // a namespace is selected by its own labels
		}
		all = append(all, t)
	}
	return all
}

// webhook is a webhook of either kind.
type webhook struct {
	configuration, name string
	policy              *admissionregistrationv1.FailurePolicyType
	object, namespace   *metav1.LabelSelector
	rules               []admissionregistrationv1.RuleWithOperations
	timeout             *int32
}

// problematicWebhook returns the first webhook of the Shoot's users that could keep nodes from joining, nil if there is
// none. That the Shoot cannot be checked is a problem, too.
func (c *care) problematicWebhook(ctx context.Context) (*problem, error) {
	if c.cluster == nil {
		return &problem{reason: "ConstraintNotChecked", message: c.unreachable}, nil
	}
	validating, mutating := &admissionregistrationv1.ValidatingWebhookConfigurationList{},
		&admissionregistrationv1.MutatingWebhookConfigurationList{}
	if err := c.cluster.Client.List(ctx, validating); err != nil {
		return nil, fmt.Errorf("listing the ValidatingWebhookConfigurations of the Shoot: %w", err)
	}
	if err := c.cluster.Client.List(ctx, mutating); err != nil {
		return nil, fmt.Errorf("listing the MutatingWebhookConfigurations of the Shoot: %w", err)
	}
	var all []webhook
	for i := range validating.Items {
		if item := &validating.Items[i]; !isGardeners(item) {
			for _, w := range item.Webhooks {
				all = append(all, webhook{"ValidatingWebhookConfiguration " + item.Name, w.Name, w.FailurePolicy, w.ObjectSelector,
					w.NamespaceSelector, w.Rules, w.TimeoutSeconds})
			}
		}
	}
	for i := range mutating.Items {
		if item := &mutating.Items[i]; !isGardeners(item) {
			for _, w := range item.Webhooks {
				all = append(all, webhook{"MutatingWebhookConfiguration " + item.Name, w.Name, w.FailurePolicy, w.ObjectSelector,
					w.NamespaceSelector, w.Rules, w.TimeoutSeconds})
			}
		}
	}
	for i := range all {
		if w := &all[i]; w.isProblematic() {
			return &problem{"ProblematicWebhooks", w.message(), []corev1beta1.ErrorCode{corev1beta1.ErrorProblematicWebhook}}, nil
		}
	}
	return nil, nil
}

// isGardeners reports whether a configuration belongs to Gardener, so that users cannot be asked to change it.
func isGardeners(obj metav1.Object) bool {
	return obj.GetLabels()[resourcesv1alpha1.ManagedBy] == resourcesv1alpha1.GardenerManager ||
		obj.GetLabels()[constants.LabelApp] == "gardener-resource-manager"
}

func (w *webhook) message() string {
	timeout := "no timeoutSeconds"
	if w.timeout != nil {
		timeout = fmt.Sprintf("timeoutSeconds %d", *w.timeout)
	}
	return fmt.Sprintf("%s is problematic: its webhook %q with failurePolicy %s and %s might keep nodes from joining the cluster",
		w.configuration, w.name, ptr.Deref(w.policy, admissionregistrationv1.Fail), timeout)
}

// isProblematic reports whether a webhook can block critical resources. A webhook whose failure is ignored cannot,
// unless its timeout is too long.
func (w *webhook) isProblematic() bool {
	if ptr.Deref(w.timeout, longestForLeases+1) > longestForLeases && w.matchesAny(leases) {
		return true
	}
	if ptr.Deref(w.policy, admissionregistrationv1.Fail) != admissionregistrationv1.Fail &&
		ptr.Deref(w.timeout, longestTimeout+1) <= longestTimeout {
		return false
	}
	return w.matchesAny(criticalResources)
}

// matchesAny reports whether a webhook is called for any of the resources. Invalid selectors select everything.
func (w *webhook) matchesAny(targets []target) bool {
	namespaces, err := selector(w.namespace)
	objects, err2 := selector(w.object)
	for _, t := range targets {
		if err == nil && err2 == nil &&
			(t.namespace != nil && !namespaces.Matches(t.namespace) || t.object != nil && !objects.Matches(t.object)) {
			continue
		}
		if slices.ContainsFunc(w.rules, t.isIn) {
			return true
		}
	}
	return false
}

func selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// isIn reports whether a rule matches the creation or update of the resource.
func (t target) isIn(rule admissionregistrationv1.RuleWithOperations) bool {
	operation := slices.ContainsFunc(rule.Operations, func(o admissionregistrationv1.OperationType) bool {
		return o == admissionregistrationv1.OperationAll || o == admissionregistrationv1.Create || o == admissionregistrationv1.Update
	})
	scope := ptr.Deref(rule.Scope, admissionregistrationv1.AllScopes)
	inScope := scope == admissionregistrationv1.AllScopes || t.clusterScoped == (scope == admissionregistrationv1.ClusterScope)
	return operation && inScope && oneOf(rule.APIGroups, t.group) && oneOf(rule.APIVersions, t.version) &&
		slices.ContainsFunc(rule.Resources, t.isNamed)
}

func oneOf(all []string, one string) bool {
	return slices.Contains(all, "*") || slices.Contains(all, one)
}

// isNamed reports whether the resource in a rule ("pods", "*/status", "*") matches the target.
func (t target) isNamed(name string) bool {
	resource, sub, _ := strings.Cut(name, "/")
	ours, oursSub, _ := strings.Cut(t.resource, "/")
	return (resource == "*" || resource == ours) && (sub == "*" || sub == oursSub)
}
