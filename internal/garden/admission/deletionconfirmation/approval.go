package deletionconfirmation

import (
	"context"
	"fmt"
	"strings"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

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
