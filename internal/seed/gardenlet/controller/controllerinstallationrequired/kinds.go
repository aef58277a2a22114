package controllerinstallationrequired

import (
	"context"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// counts reports whether an extension resource belongs to a seed or a shoot. The garden has extensions of its own.
func counts(obj client.Object) bool {
	extension, ok := obj.(extensionsv1alpha1.Object)
	if !ok {
		return false
	}
	class := ptr.Deref(extension.GetExtensionSpec().GetExtensionClass(), extensionsv1alpha1.ExtensionClassShoot)
	return class == extensionsv1alpha1.ExtensionClassShoot || class == extensionsv1alpha1.ExtensionClassSeed
}

// exist returns those of the resources, as "kind/type" and sorted, that exist in the seed. unknown is true if one of
// the kinds is not known: then an empty result does not mean that the extension is not required.
func exist(ctx context.Context, seed client.Reader, resources []corev1beta1.ControllerResource) (found []string, unknown bool, err error) {
	types := map[string]map[string]bool{}
	for _, resource := range resources {
		i := slices.IndexFunc(controllerutils.ExtensionKinds, func(k controllerutils.ExtensionKind) bool { return k.Kind == resource.Kind })
		if i < 0 {
			unknown = true
			continue
		}
		if types[resource.Kind] == nil {
			if types[resource.Kind], err = typesOf(ctx, seed, controllerutils.ExtensionKinds[i]); err != nil {
				return nil, false, err
			}
		}
		if types[resource.Kind][resource.Type] {
			found = append(found, resource.Kind+"/"+resource.Type)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), unknown, nil
}

// typesOf returns the types of the extension resources of a kind in the seed, none if the kind is not served.
func typesOf(ctx context.Context, seed client.Reader, kind controllerutils.ExtensionKind) (map[string]bool, error) {
	types := map[string]bool{}
	err := kind.Each(ctx, seed, func(extension extensionsv1alpha1.Object) error {
		if counts(extension) {
			types[extension.GetExtensionSpec().GetExtensionType()] = true
		}
		return nil
	}, client.UnsafeDisableDeepCopy)
	if meta.IsNoMatchError(err) {
		err = nil
	}
	return types, err
}
