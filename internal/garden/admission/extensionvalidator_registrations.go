package admission

import (
	"fmt"
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// needs are the extensions that an object needs.
type needs struct {
	// cluster is the type of cluster that the extensions must support; empty if it does not matter.
	cluster gardencore.ClusterType
	// workerless is set if the Extensions must support Shoots without workers.
	workerless bool
	extensions []need
}

// need is one extension, and the field that requires it.
type need struct {
	kind, extensionType string
	path                *field.Path
}

func (n *needs) add(kind, extensionType string, path *field.Path) {
	n.extensions = append(n.extensions, need{kind, extensionType, path})
}

func (n *needs) addExtensions(extensions []gardencore.Extension, path *field.Path) {
	for i, extension := range extensions {
		n.add(extensionsv1alpha1.ExtensionResource, extension.Type, path.Index(i).Child("type"))
	}
}

// registrations are the resources of all ControllerRegistrations.
type registrations []gardencore.ControllerResource

func (r registrations) validate(needed *needs) field.ErrorList {
	var errs field.ErrorList
	for _, n := range needed.extensions {
		if !r.primary(n, needed.cluster) {
			errs = append(errs, field.Invalid(
				n.path, n.extensionType, fmt.Sprintf("no ControllerRegistration has the %s extension of this type", n.kind)))
		}
		if needed.workerless && n.kind == extensionsv1alpha1.ExtensionResource && !r.workerless(n) {
			errs = append(errs, field.Invalid(n.path, n.extensionType, "the extension does not support shoots without workers"))
		}
	}
	return errs
}

// primary reports whether a registration is primarily responsible for the needed extension and supports this type of
// cluster.
func (r registrations) primary(n need, cluster gardencore.ClusterType) bool {
	return slices.ContainsFunc(r, func(resource gardencore.ControllerResource) bool {
		return resource.Kind == n.kind && resource.Type == n.extensionType && ptr.Deref(resource.Primary, true) &&
			(cluster == "" || len(resource.ClusterCompatibility) == 0 || slices.Contains(resource.ClusterCompatibility, cluster))
	})
}

func (r registrations) workerless(n need) bool {
	return slices.ContainsFunc(r, func(resource gardencore.ControllerResource) bool {
		return resource.Kind == n.kind && resource.Type == n.extensionType && ptr.Deref(resource.WorkerlessSupported, false)
	})
}
