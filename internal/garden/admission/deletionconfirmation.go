package admission

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// deletionConfirmationPlugin is the admission plugin DeletionConfirmation. Shoots, Projects and ShootStates may be
// deleted only if an annotation confirms the deletion. If their Project requires dual approval, the user who confirmed
// it may not delete them. The plugin records who confirmed the deletion of a Shoot.
var deletionConfirmationPlugin = plugin.Factory{
	Name:       "DeletionConfirmation",
	Operations: plugin.OnAnyChange,
	Admit:      plugin.ForKind(gardencore.Kind("Shoot"), recordConfirmation),
	Validate:   validateDeletionConfirmation,
}

// recordConfirmation sets and protects the annotation with the user who confirmed the deletion of a Shoot.
func recordConfirmation(_ context.Context, _ plugin.Dependencies, a admission.Attributes, shoot, old *gardencore.Shoot) error {
	switch {
	case a.GetOperation() == admission.Delete:
	case !confirmed(shoot):
		delete(shoot.Annotations, v1beta1constants.DeletionConfirmedBy)
	case confirmed(old):
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.DeletionConfirmedBy,
			old.Annotations[v1beta1constants.DeletionConfirmedBy])
	default:
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.DeletionConfirmedBy, a.GetUserInfo().GetName())
	}
	return nil
}

func confirmed(obj metav1.Object) bool {
	yes, err := strconv.ParseBool(obj.GetAnnotations()[v1beta1constants.ConfirmationDeletion])
	return err == nil && yes
}

// guarded are the resources whose deletion must be confirmed.
var guarded = map[schema.GroupKind]schema.GroupResource{
	gardencore.Kind("Project"):    gardencore.Resource("projects"),
	gardencore.Kind("Shoot"):      gardencore.Resource("shoots"),
	gardencore.Kind("ShootState"): gardencore.Resource("shootstates"),
}

// validateDeletionConfirmation checks a DeleteCollection request, which has no name, as if it were for all objects of the namespace,
// whatever it selects.
func validateDeletionConfirmation(ctx context.Context, deps plugin.Dependencies, a admission.Attributes) error {
	resource, known := guarded[a.GetKind().GroupKind()]
	if !known || a.GetOperation() != admission.Delete {
		return nil
	}
	objs, err := readConfirmed(ctx, deps.Reader, resource, a.GetNamespace(), a.GetName())
	if err != nil {
		return err
	}
	var errs []error
	for _, obj := range objs {
		m, err := meta.Accessor(obj)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("reading the metadata of a %T: %v", obj, err))
		}
		if err := mayDelete(ctx, deps.Reader, m, resource, a.GetUserInfo()); err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %v", resource.Resource, m.GetName(), err))
		}
	}
	if len(errs) > 0 {
		return admission.NewForbidden(a, utilerrors.NewAggregate(errs))
	}
	return nil
}

func readConfirmed(ctx context.Context, r plugin.Reader, resource schema.GroupResource, namespace, name string) ([]runtime.Object, error) {
	if name == "" {
		objs, err := r.List(ctx, resource, namespace, nil)
		if err != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("listing the %s of namespace %q: %v", resource, namespace, err))
		}
		return objs, nil
	}
	obj, err := r.Get(ctx, resource, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, err
	case err != nil:
		return nil, apierrors.NewInternalError(fmt.Errorf("reading %s %s/%s: %v", resource, namespace, name, err))
	}
	return []runtime.Object{obj}, nil
}

var errNotConfirmed = errors.New(
	"the deletion is not confirmed; set the annotation " + v1beta1constants.ConfirmationDeletion + "=true first")

// mayDelete returns an error unless the deletion is confirmed, and confirmed by another user if the Project requires
// dual approval.
func mayDelete(ctx context.Context, r plugin.Reader, obj metav1.Object, resource schema.GroupResource, who user.Info) error {
	if !confirmed(obj) {
		return errNotConfirmed
	}
	project, ok := obj.(*gardencore.Project)
	if !ok {
		var err error
		if project, err = shootcommon.Project(ctx, r, obj.GetNamespace()); err != nil {
			return err
		}
	}
	two, err := needsTwo(project, obj, resource, who)
	if err != nil {
		return err
	}
	if two && obj.GetAnnotations()[v1beta1constants.DeletionConfirmedBy] == who.GetName() {
		return fmt.Errorf("project %q wants two people for this, and %q confirmed the deletion; another user has to delete it",
			project.Name, who.GetName())
	}
	return nil
}

// needsTwo applies the first of the Project's rules for the resource; later rules are ignored even if the first does
// not match.
func needsTwo(project *gardencore.Project, obj metav1.Object, resource schema.GroupResource, who user.Info) (bool, error) {
	for _, rule := range project.Spec.DualApprovalForDeletion {
		if rule.Resource != resource.Resource {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(&rule.Selector)
		if err != nil {
			return false, fmt.Errorf("reading spec.dualApprovalForDeletion of project %q: %w", project.Name, err)
		}
		isServiceAccount := strings.HasPrefix(who.GetName(), serviceaccount.ServiceAccountUsernamePrefix)
		return selector.Matches(labels.Set(obj.GetLabels())) && (!isServiceAccount || ptr.Deref(rule.IncludeServiceAccounts, true)), nil
	}
	return false, nil
}
