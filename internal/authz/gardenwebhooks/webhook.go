package gardenwebhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionconfig "github.com/gardener/gardener/pkg/apis/config/admissioncontroller/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// Webhook decides on requests for the resources of its rules.
type Webhook struct {
	// Name is its name in the configuration, and Path the path under which the API server calls it.
	Name, Path string
	// Mutating is set for a webhook of a MutatingWebhookConfiguration.
	Mutating                          bool
	Rules                             []admissionregistrationv1.RuleWithOperations
	NamespaceSelector, ObjectSelector *metav1.LabelSelector

	decide decide
}

// decide returns an error for a request that is refused.
type decide func(context.Context, *admissionv1.AdmissionRequest) (changedLabels, error)

// changedLabels are all labels that the object of a request gets, or nil if they do not change.
type changedLabels map[string]string

// References tells which objects refer to another, like *graph.Graph.
type References interface {
	// Next returns the vertices to which edges lead from this one.
	Next(from graph.Vertex) []graph.Vertex
}

// handlers has what the webhooks need.
type handlers struct {
	reader     client.Reader
	references References
	limits     *admissionconfig.ResourceAdmissionConfiguration
	rejected   Rejected
}

// Rejected counts a request that is refused for one of Gardener's reasons.
type Rejected func(request *admissionv1.AdmissionRequest, reason string)

// The reasons, as in Gardener.
const (
	reasonKubeconfig = "Rejected Kubeconfig"
	reasonSize       = "Size Exceeded"
	reasonCount      = "Count Exceeded"
)

// All returns all webhooks. The reader's user needs the permissions of the ClusterRole
// gardener.cloud:system:admission-controller, and those of CountRules; limits may be nil.
func All(reader client.Reader, references References,
	limits *admissionconfig.ResourceAdmissionConfiguration, rejected Rejected) []Webhook {
	h := &handlers{reader, references, limits, rejected}
	labelled := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	projects := labelled(v1beta1constants.GardenRole, v1beta1constants.GardenRoleProject)
	// Gardener's own namespace has the label of a project as well.
	usersOnly := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: v1beta1constants.GardenRole, Operator: "In", Values: []string{v1beta1constants.GardenRoleProject}},
		{Key: v1beta1constants.LabelApp, Operator: "NotIn", Values: []string{v1beta1constants.LabelGardener}},
	}}
	shootsAndConfigMaps := []admissionregistrationv1.RuleWithOperations{
		rule(gardencorev1beta1.SchemeGroupVersion.Group, "v1beta1", []string{"shoots"}, created, updated),
		rule(corev1.GroupName, "v1", []string{"configmaps"}, updated),
	}
	all := []Webhook{
		{
			Name: "validate-namespace-deletion.gardener.cloud", Path: "/webhooks/validate-namespace-deletion",
			Rules: rules(rule(corev1.GroupName, "v1", []string{"namespaces"}, deleted)), NamespaceSelector: projects,
			decide: h.namespaceDeletion,
		},
		{
			Name: "validate-kubeconfig-secrets.gardener.cloud", Path: "/webhooks/validate-kubeconfig-secrets",
			Rules: rules(rule(corev1.GroupName, "v1", []string{"secrets"}, created, updated)), NamespaceSelector: usersOnly,
			decide: h.kubeconfigSecret,
		},
		{
			Name: "internal-domain-secret.gardener.cloud", Path: "/webhooks/admission/validate-internal-domain",
			Rules:          rules(rule(corev1.GroupName, "v1", []string{"secrets"}, created, updated, deleted)),
			ObjectSelector: labelled(v1beta1constants.LabelRole, v1beta1constants.GardenRoleInternalDomain),
			decide:         h.internalDomainSecret,
		},
		{
			Name: "audit-policies.gardener.cloud", Path: "/webhooks/audit-policies", Rules: shootsAndConfigMaps,
			NamespaceSelector: projects, decide: h.configuration(auditPolicy),
		},
		{
			Name: "authentication-configuration.gardener.cloud", Path: "/webhooks/authentication-configuration",
			Rules: shootsAndConfigMaps, NamespaceSelector: projects, decide: h.configuration(authenticationConfiguration),
		},
		{
			Name: "authorization-configuration.gardener.cloud", Path: "/webhooks/authorization-configuration",
			Rules: shootsAndConfigMaps, NamespaceSelector: projects, decide: h.configuration(authorizationConfiguration),
		},
		{
			Name: "shoot-kubeconfig-secret-ref.gardener.cloud", Path: "/webhooks/validate-shoot-kubeconfig-secret-ref",
			Rules: rules(rule(corev1.GroupName, "v1", []string{"secrets"}, updated)), NamespaceSelector: projects,
			decide: h.kubeconfigSecretReference,
		},
		{
			Name: "update-restriction.gardener.cloud", Path: "/webhooks/update-restriction",
			Rules:          rules(rule(corev1.GroupName, "v1", []string{"secrets", "configmaps"}, created, updated, deleted)),
			ObjectSelector: labelled(v1beta1constants.LabelUpdateRestriction, "true"),
			decide:         h.updateRestriction,
		},
		{
			Name: "sync-provider-secret-labels.gardener.cloud", Path: "/webhooks/sync-provider-secret-labels", Mutating: true,
			Rules: rules(rule(corev1.GroupName, "v1", []string{"secrets"}, created, updated),
				rule(gardencorev1beta1.SchemeGroupVersion.Group, "v1beta1", []string{"internalsecrets"}, created, updated)),
			NamespaceSelector: projects, decide: h.providerLabels,
		},
	}
	if limits != nil {
		all = append(all, Webhook{
			Name: "validate-resource-size.gardener.cloud", Path: "/webhooks/validate-resource-size", Rules: limitRules(limits),
			NamespaceSelector: usersOnly, decide: h.resourceSize,
		})
	}
	return all
}

const (
	created = admissionregistrationv1.Create
	updated = admissionregistrationv1.Update
	deleted = admissionregistrationv1.Delete
)

// allScopes is the API's default, without which each start would write the configuration again.
var allScopes = ptr.To(admissionregistrationv1.AllScopes)

func rules(all ...admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	return all
}

func rule(group, version string, resources []string,
	operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources, Scope: allScopes,
	}}
}

// Handle answers a request.
func (w Webhook) Handle(ctx context.Context, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	labels, err := w.decide(ctx, request)
	if err == nil && labels != nil {
		response.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
		response.Patch, err = labelPatch(labels)
	}
	if err == nil {
		return response
	}
	status := metav1.Status{Code: http.StatusInternalServerError, Message: err.Error()}
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	return &admissionv1.AdmissionResponse{UID: request.UID, Result: &status}
}

// denied returns the error of a request that is refused as forbidden.
func denied(format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: fmt.Sprintf(format, args...)}}
}

// unprocessable returns the error of a request whose object, or an object to which it refers, is not valid.
func unprocessable(format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Code: http.StatusUnprocessableEntity, Message: fmt.Sprintf(format, args...)}}
}

// decode decodes an object of a request.
func decode(raw runtime.RawExtension, obj any) error {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw.Raw, obj); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("decoding the object: %v", err))
	}
	return nil
}

// shootsReferringTo returns the Shoots in the namespace of an object that refer to it.
func (h *handlers) shootsReferringTo(ctx context.Context, object graph.Vertex) ([]*gardencorev1beta1.Shoot, error) {
	var shoots []*gardencorev1beta1.Shoot
	for _, v := range h.references.Next(object) {
		if v.Kind != graph.KindShoot || v.Namespace != object.Namespace {
			continue
		}
		shoot := &gardencorev1beta1.Shoot{}
		err := h.reader.Get(ctx, client.ObjectKey{Namespace: v.Namespace, Name: v.Name}, shoot)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading Shoot %s/%s, which refers to the object: %w", v.Namespace, v.Name, err)
		}
		shoots = append(shoots, shoot)
	}
	return shoots, nil
}

// exist reports whether there is an object that the options select.
func (h *handlers) exist(ctx context.Context, list client.ObjectList, options ...client.ListOption) (bool, error) {
	if err := h.reader.List(ctx, list, append(options, client.Limit(1))...); err != nil {
		return false, err
	}
	found := false
	err := apimeta.EachListItem(list, func(runtime.Object) error { found = true; return nil })
	return found, err
}
