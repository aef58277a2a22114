package project

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// quotaName is the name of the ResourceQuota in the namespaces of Projects.
const quotaName = "gardener"

// quotaFor returns the configured quota for a Project, nil if there is none.
func (r *Reconciler) quotaFor(project *corev1beta1.Project) (*corev1.ResourceQuota, error) {
	for i := range r.Quotas {
		selector := labels.Everything()
		if r.Quotas[i].ProjectSelector != nil {
			var err error
			if selector, err = metav1.LabelSelectorAsSelector(r.Quotas[i].ProjectSelector); err != nil {
				return nil, fmt.Errorf("the selector of the configured quota %d: %w", i, err)
			}
		}
		if selector.Matches(labels.Set(project.Labels)) {
			return &r.Quotas[i].Config, nil
		}
	}
	return nil, nil
}

// reconcileQuota creates or updates the Project's ResourceQuota. Limits that an operator has changed are kept; limits
// of resources that are not configured any more are removed.
func (r *Reconciler) reconcileQuota(ctx context.Context, project *corev1beta1.Project) error {
	config, err := r.quotaFor(project)
	if err != nil || config == nil {
		return err
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: *project.Spec.Namespace, Name: quotaName}}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, quota, func() error {
		if !slices.ContainsFunc(quota.OwnerReferences, isReferenceTo(project)) {
			quota.OwnerReferences = append(quota.OwnerReferences, ownerReference(project))
		}
		quota.Labels = labels.Merge(quota.Labels, config.Labels)
		quota.Annotations = labels.Merge(quota.Annotations, config.Annotations)
		hard := maps.Clone(config.Spec.Hard)
		for resource := range hard {
			if changed, ok := quota.Spec.Hard[resource]; ok {
				hard[resource] = changed
			}
		}
		quota.Spec.Hard = hard
		return nil
	})
	return err
}
