package admission

import (
	"context"
	"fmt"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// These are the custom verbs that Gardener defines.
const (
	verbModifyTolerationsWhitelist = "modify-spec-tolerations-whitelist"
	verbManageMembers              = "manage-members"
	verbModifyKubernetes           = "modify-spec-kubernetes"
	verbModifyMachineImages        = "modify-spec-machineimages"
	verbModifyProviderConfig       = "modify-spec-providerconfig"
	verbMarkSelfHosted             = "mark-self-hosted"
)

// customVerbPlugin is the admission plugin CustomVerbAuthorizer: to change certain fields, the user needs a custom
// verb on the object in addition to create and update.
var customVerbPlugin = plugin.Factory{Name: "CustomVerbAuthorizer", Operations: plugin.OnCreateOrUpdate, Validate: validateCustomVerb}

// customVerbChange is a changed field and the verb that its change requires.
type customVerbChange struct{ field, verb string }

func validateCustomVerb(ctx context.Context, deps plugin.Dependencies, a admission.Attributes) error {
	changes, err := changesOf(a)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if err := authorizeChange(ctx, deps.Authorizer, a, c); err != nil {
			return err
		}
	}
	return nil
}

func changesOf(a admission.Attributes) ([]customVerbChange, error) {
	switch a.GetKind().GroupKind() {
	case gardencore.Kind("Project"):
		project, old, err := request.Objects[gardencore.Project](a)
		if err != nil {
			return nil, err
		}
		return projectChanges(a.GetUserInfo(), &project.Spec, &old.Spec), nil
	case gardencore.Kind("NamespacedCloudProfile"):
		profile, old, err := request.Objects[gardencore.NamespacedCloudProfile](a)
		if err != nil {
			return nil, err
		}
		return profileChanges(&profile.Spec, &old.Spec), nil
	case gardencore.Kind("Shoot"):
		shoot, old, err := request.Objects[gardencore.Shoot](a)
		if err != nil || same(controlPlanePool(shoot), controlPlanePool(old)) {
			return nil, err
		}
		return []customVerbChange{{"spec.provider.workers[].controlPlane", verbMarkSelfHosted}}, nil
	}
	return nil, nil
}

func profileChanges(spec, old *gardencore.NamespacedCloudProfileSpec) (changes []customVerbChange) {
	if !same(spec.Kubernetes, old.Kubernetes) {
		changes = append(changes, customVerbChange{"spec.kubernetes", verbModifyKubernetes})
	}
	if !same(spec.MachineImages, old.MachineImages) {
		changes = append(changes, customVerbChange{"spec.machineImages", verbModifyMachineImages})
	}
	if !same(spec.ProviderConfig, old.ProviderConfig) {
		changes = append(changes, customVerbChange{"spec.providerConfig", verbModifyProviderConfig})
	}
	return changes
}

// controlPlanePool returns the worker pool in which the control plane of a self-hosted Shoot runs, and nil if there is
// none. Every change of this pool requires the verb.
func controlPlanePool(shoot *gardencore.Shoot) *gardencore.Worker {
	return validation.Find(shoot.Spec.Provider.Workers, func(w *gardencore.Worker) bool { return w.ControlPlane != nil })
}

func same[T any](a, b T) bool { return apiequality.Semantic.DeepEqual(a, b) }

func authorizeChange(ctx context.Context, authz authorizer.Authorizer, a admission.Attributes, c customVerbChange) error {
	resource := a.GetResource()
	decision, reason, err := authz.Authorize(ctx, authorizer.AttributesRecord{
		User:            a.GetUserInfo(),
		Verb:            c.verb,
		APIGroup:        resource.Group,
		Resource:        resource.Resource,
		Namespace:       a.GetNamespace(),
		Name:            a.GetName(),
		ResourceRequest: true,
	})
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("asking whether the user may %s: %v", c.verb, err))
	}
	if decision == authorizer.DecisionAllow {
		return nil
	}
	why := fmt.Errorf("%s: changing it takes the verb %q on %s, which user %q does not have", c.field, c.verb,
		resource.GroupResource(), a.GetUserInfo().GetName())
	if reason != "" {
		why = fmt.Errorf("%w (%s)", why, reason)
	}
	return admission.NewForbidden(a, why)
}
