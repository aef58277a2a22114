package seedcare

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
	"github.com/gardenlite/gardenlite/internal/manifest"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/manifests"
)

// expected lists what every seed has.
type expected struct {
	namespaces []string
	resources  sets.Set[string]
}

// loadExpected reads the names of the namespaces and custom resources from the manifests, once. It takes the names of the
// custom resources from the file names, zz_generated.<group>_<resource>.yaml, because parsing all files would take long.
func (r *Reconciler) loadExpected() error {
	if r.expected.resources != nil {
		return nil
	}
	base, err := manifest.LoadFS(manifests.Seed, "seed/base")
	if err != nil {
		return err
	}
	files, err := manifests.Seed.ReadDir("seed/crds")
	if err != nil {
		return fmt.Errorf("reading which custom resources a seed has: %w", err)
	}
	all := expected{resources: sets.New[string]()}
	for _, obj := range base {
		if obj.GetKind() == "Namespace" {
			all.namespaces = append(all.namespaces, obj.GetName())
		}
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file.Name(), "zz_generated."), ".yaml")
		if group, resource, ok := strings.Cut(name, "_"); ok {
			all.resources.Insert(resource + "." + group)
		}
	}
	r.expected = all
	return nil
}

// problem describes why a seed is unhealthy.
type problem struct{ reason, message string }

// checkComponents returns the first problem that it finds. An error means that it could not check.
func (r *Reconciler) checkComponents(ctx context.Context) (*problem, error) {
	if err := r.Server.Ready(ctx); err != nil {
		return &problem{"APIServerNotReady", err.Error()}, nil
	}
	for _, check := range []func(context.Context) (*problem, error){r.namespaces, r.resources, r.managedResources} {
		if found, err := check(ctx); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

func (r *Reconciler) namespaces(ctx context.Context) (*problem, error) {
	for _, name := range r.expected.namespaces {
		namespace := &corev1.Namespace{}
		err := r.SeedReader.Get(ctx, client.ObjectKey{Name: name}, namespace)
		switch {
		case apierrors.IsNotFound(err):
			return &problem{"NamespaceMissing", fmt.Sprintf("The namespace %s is missing.", name)}, nil
		case err != nil:
			return nil, fmt.Errorf("reading the namespace %s of the seed: %w", name, err)
		case namespace.DeletionTimestamp != nil:
			return &problem{"NamespaceTerminating", fmt.Sprintf("The namespace %s is being deleted.", name)}, nil
		}
	}
	return nil, nil
}

func (r *Reconciler) resources(ctx context.Context) (*problem, error) {
	served, err := r.Server.Resources(ctx)
	if err != nil {
		return nil, err
	}
	if missing := r.expected.resources.Difference(served); missing.Len() > 0 {
		return &problem{"CustomResourcesMissing", "Custom resources are not served: " + strings.Join(sets.List(missing), ", ") + "."}, nil
	}
	return nil, nil
}

// managedResources checks the ManagedResources with a class, which belong to the seed itself. A missing condition is no
// problem: the ManagedResource may be new.
func (r *Reconciler) managedResources(ctx context.Context) (*problem, error) {
	list, err := r.list(ctx, constants.GardenNamespace)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b resourcesv1alpha1.ManagedResource) int { return strings.Compare(a.Name, b.Name) })
	for _, resource := range list {
		if resource.Spec.Class == nil {
			continue
		}
		for _, kind := range []corev1beta1.ConditionType{resourcesv1alpha1.ResourcesApplied, resourcesv1alpha1.ResourcesHealthy} {
			if c := conditions.Find(resource.Status.Conditions, kind); c.Status == corev1beta1.ConditionFalse {
				return &problem{c.Reason, fmt.Sprintf("The ManagedResource %s/%s is not well: %s", resource.Namespace, resource.Name, c.Message)}, nil
			}
		}
	}
	return nil, nil
}

// honored returns the constraint that no ManagedResource of the seed is ignored.
func (r *Reconciler) honored(ctx context.Context) conditions.Condition {
	all, err := r.list(ctx, constants.GardenNamespace, constants.IstioSystemNamespace)
	if err != nil {
		return conditions.Unchecked(corev1beta1.SeedManagedResourcesHonored, err)
	}
	return controllerutils.ManagedResourcesHonored(all)
}

func (r *Reconciler) list(ctx context.Context, namespaces ...string) (all []resourcesv1alpha1.ManagedResource, err error) {
	for _, namespace := range namespaces {
		list := &resourcesv1alpha1.ManagedResourceList{}
		if err := r.SeedReader.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing the ManagedResources in the namespace %s of the seed: %w", namespace, err)
		}
		all = append(all, list.Items...)
	}
	return all, nil
}
