package gardenwebhooks

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// updateRestriction lets only gardenlets write objects with the label gardener.cloud/update-restriction, the garbage
// collector delete them, and Gardener's own user encrypt them anew.
func (h *handlers) updateRestriction(_ context.Context, request *admissionv1.AdmissionRequest) (changedLabels, error) {
	user := request.UserInfo
	const account = "system:serviceaccount:kube-system:"
	switch {
	case user.Username == account+"generic-garbage-collector" && request.Operation == admissionv1.Delete,
		user.Username == account+"gardener-internal" && request.Operation == admissionv1.Update,
		slices.Contains(user.Groups, v1beta1constants.SeedsGroup), slices.Contains(user.Groups, v1beta1constants.ShootsGroup):
		return nil, nil
	}
	return nil, denied("user %q is not allowed to %s system %s", user.Username, request.Operation,
		request.Resource.Resource)
}

// providerLabels gives a Secret or InternalSecret the labels of the providers in the bindings that refer to it, from
// which extensions know which of them they have to validate.
func (h *handlers) providerLabels(ctx context.Context, request *admissionv1.AdmissionRequest) (changedLabels, error) {
	object := &metav1.PartialObjectMetadata{}
	if err := decode(request.Object, object); err != nil {
		return nil, err
	}
	kind := graph.KindSecret
	if request.Resource.Resource == "internalsecrets" {
		kind = graph.KindInternalSecret
	}
	types := sets.Set[string]{}
	for _, v := range h.references.Next(graph.Vertex{Kind: kind, Namespace: request.Namespace, Name: object.Name}) {
		key := client.ObjectKey{Namespace: v.Namespace, Name: v.Name}
		switch v.Kind {
		case graph.KindSecretBinding:
			binding := &gardencorev1beta1.SecretBinding{}
			if err := h.reader.Get(ctx, key, binding); client.IgnoreNotFound(err) != nil {
				return nil, err
			}
			ref := binding.SecretRef
			if ref.Name == object.Name && ref.Namespace == request.Namespace && binding.Provider != nil {
				types.Insert(strings.Split(binding.Provider.Type, ",")...)
			}
		case graph.KindCredentialsBinding:
			binding := &securityv1alpha1.CredentialsBinding{}
			if err := h.reader.Get(ctx, key, binding); client.IgnoreNotFound(err) != nil {
				return nil, err
			}
			ref := binding.CredentialsRef
			if isKind(ref, kind) && ref.Name == object.Name && ref.Namespace == request.Namespace {
				types.Insert(binding.Provider.Type)
			}
		}
	}
	if types.Len() == 0 {
		return nil, nil
	}
	labels := changedLabels{}
	for key, value := range object.Labels {
		if !strings.HasPrefix(key, v1beta1constants.LabelShootProviderPrefix) {
			labels[key] = value
		}
	}
	for name := range types {
		labels[v1beta1constants.LabelShootProviderPrefix+name] = "true"
	}
	return labels, nil
}

func isKind(ref corev1.ObjectReference, kind graph.Kind) bool {
	apiVersion := corev1.SchemeGroupVersion.String()
	if kind == graph.KindInternalSecret {
		apiVersion = gardencorev1beta1.SchemeGroupVersion.String()
	}
	return ref.APIVersion == apiVersion && ref.Kind == kind.String()
}

// labelPatch returns the JSON patch that sets all labels of an object.
func labelPatch(labels changedLabels) ([]byte, error) {
	return json.Marshal([]map[string]any{{"op": "add", "path": "/metadata/labels", "value": labels}})
}
