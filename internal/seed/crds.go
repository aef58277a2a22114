package seed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionshelpers "k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"

	"github.com/gardenlite/gardenlite/internal/manifest"
	"github.com/gardenlite/gardenlite/internal/retry"
	"github.com/gardenlite/gardenlite/manifests"
)

const (
	// crdWriters is the number of concurrent writes. More do not help on two cores.
	crdWriters = 4
	// servedRetry and servedTimeout limit the wait until the API server serves the definitions that have been written.
	servedRetry   = 20 * time.Millisecond
	servedTimeout = 30 * time.Second
)

// ensureCRDs creates or updates the custom resource definitions of a seed, and returns when all of them are served and in
// discovery: a client that looks up a kind too early would wait for seconds before it tries again.
func ensureCRDs(ctx context.Context, client crdclient.CustomResourceDefinitionInterface, served discovery.DiscoveryInterface) error {
	wanted, err := loadCRDs(manifests.Seed, "seed/crds")
	if err != nil {
		return err
	}
	if err := writeCRDs(ctx, client, wanted); err != nil {
		return err
	}
	return waitServed(ctx, client, served, wanted)
}

// loadCRDs reads the definitions in a folder. It sets the same defaults as the API server, so that they can be compared
// with the definitions there.
func loadCRDs(fsys fs.FS, dir string) (all []*apiextensionsv1.CustomResourceDefinition, err error) {
	objects, err := manifest.LoadFS(fsys, dir)
	if err != nil {
		return nil, err
	}
	for _, obj := range objects {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, crd, true); err != nil {
			return nil, fmt.Errorf("reading %s: %w", obj.Source, err)
		}
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
		all = append(all, crd)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no CustomResourceDefinition in %s", dir)
	}
	return all, nil
}

// writeCRDs writes the definitions that are missing or not up to date. After a restart it usually only lists them.
func writeCRDs(ctx context.Context, client crdclient.CustomResourceDefinitionInterface,
	wanted []*apiextensionsv1.CustomResourceDefinition) error {
	// The list may come from the watch cache and be stale: writeCRD reads a definition again before it updates it.
	list, err := client.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("listing the custom resource definitions: %w", err)
	}
	there := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for i := range list.Items {
		there[list.Items[i].Name] = &list.Items[i]
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(crdWriters)
	for _, crd := range wanted {
		if current := there[crd.Name]; current != nil && upToDate(current, crd) && isEstablished(current) {
			continue
		}
		group.Go(func() error {
			if err := writeCRD(ctx, client, crd); err != nil {
				return fmt.Errorf("writing the custom resource definition %s: %w", crd.Name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func writeCRD(ctx context.Context, client crdclient.CustomResourceDefinitionInterface,
	wanted *apiextensionsv1.CustomResourceDefinition) error {
	created, err := client.Create(ctx, wanted, metav1.CreateOptions{FieldManager: fieldManager})
	if err == nil {
		return establish(ctx, client, created)
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	var current *apiextensionsv1.CustomResourceDefinition
	err = retry.OnConflict(ctx, func() (err error) {
		current, err = client.Get(ctx, wanted.Name, metav1.GetOptions{})
		if err != nil || upToDate(current, wanted) {
			return err
		}
		current, err = client.Update(ctx, merge(current, wanted), metav1.UpdateOptions{FieldManager: fieldManager})
		return err
	})
	if err != nil || isEstablished(current) {
		return err
	}
	// The API server establishes a definition when it changes, and not if a killed process left it unestablished.
	return establish(ctx, client, current)
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return apiextensionshelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
}

func upToDate(current, wanted *apiextensionsv1.CustomResourceDefinition) bool {
	return apiequality.Semantic.DeepEqual(current, merge(current, wanted))
}

// merge returns the current definition with the wanted spec. It keeps labels and annotations that others added.
func merge(current, wanted *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	merged := current.DeepCopy()
	merged.Labels = labels.Merge(current.Labels, wanted.Labels)
	merged.Annotations = labels.Merge(current.Annotations, wanted.Annotations)
	merged.Spec = *wanted.Spec.DeepCopy()
	if conversion := current.Spec.Conversion; conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter {
		merged.Spec.Conversion = conversion.DeepCopy() // set by a component that serves further versions
	}
	return merged
}

// waitServed waits until discovery lists all versions of the resources that are served.
func waitServed(ctx context.Context, client crdclient.CustomResourceDefinitionInterface,
	served discovery.DiscoveryInterface, crds []*apiextensionsv1.CustomResourceDefinition) error {
	var missing sets.Set[schema.GroupVersionResource]
	var last error
	err := wait.PollUntilContextTimeout(ctx, servedRetry, servedTimeout, true, func(context.Context) (bool, error) {
		missing, last = notServed(served, crds)
		return last == nil && missing.Len() == 0, nil
	})
	if err == nil {
		return nil
	}
	if last != nil {
		return fmt.Errorf("waiting for the custom resources: %w: %w", err, last)
	}
	return fmt.Errorf("waiting for the custom resources: %w: not served yet: %s%s", err, names(missing), explain(client, missing))
}

func notServed(served discovery.DiscoveryInterface, crds []*apiextensionsv1.CustomResourceDefinition) (
	sets.Set[schema.GroupVersionResource], error) {
	missing := sets.New[schema.GroupVersionResource]()
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			if version.Served {
				missing.Insert(schema.GroupVersionResource{Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural})
			}
		}
	}
	_, lists, err := served.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return missing, err
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return missing, err
		}
		for _, resource := range list.APIResources {
			missing.Delete(gv.WithResource(resource.Name))
		}
	}
	return missing, nil
}

func names(resources sets.Set[schema.GroupVersionResource]) string {
	var all []string
	for resource := range resources {
		all = append(all, resource.GroupResource().String())
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// explain returns the reasons why definitions are not established, if the API server knows any. It uses a new context,
// because the context of the wait has ended.
func explain(client crdclient.CustomResourceDefinitionInterface, missing sets.Set[schema.GroupVersionResource]) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var reasons []error
	for resource := range missing {
		crd, err := client.Get(ctx, resource.GroupResource().String(), metav1.GetOptions{})
		if err != nil || isEstablished(crd) {
			continue
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Status == apiextensionsv1.ConditionFalse {
				reasons = append(reasons, fmt.Errorf("%s: %s: %s", crd.Name, condition.Type, condition.Message))
			}
		}
	}
	if len(reasons) == 0 {
		return ""
	}
	return "\n" + errors.Join(reasons...).Error()
}

// establishedBefore is how long before its creation a definition is marked as established: longer than the 2 s for which
// an API server delays objects of a newly established kind, because other API servers may not know the kind yet.
const establishedBefore = 3 * time.Second

// establish marks a new definition as established for a while. The seed is not used until all its kinds are served, so its
// API server need not delay requests for them.
func establish(ctx context.Context, client crdclient.CustomResourceDefinitionInterface,
	crd *apiextensionsv1.CustomResourceDefinition) error {
	err := retry.OnConflict(ctx, func() error {
		setEstablished(crd)
		_, err := client.UpdateStatus(ctx, crd, metav1.UpdateOptions{FieldManager: fieldManager})
		if err == nil {
			return nil
		}
		// The API server's own controllers may have been faster.
		if current, errGet := client.Get(ctx, crd.Name, metav1.GetOptions{}); errGet == nil {
			crd = current
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("establishing it: %w", err)
	}
	return nil
}

// setEstablished sets the conditions as the controllers of the API server would, so that these do not change them. It does
// nothing if the names were refused because they belong to another definition.
func setEstablished(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, refused := range []apiextensionsv1.CustomResourceDefinitionConditionType{
		apiextensionsv1.NamesAccepted, apiextensionsv1.Established} {
		if apiextensionshelpers.IsCRDConditionFalse(crd, refused) && apiextensionshelpers.FindCRDCondition(crd, refused).Reason != "Installing" {
			return
		}
	}
	crd.Status.AcceptedNames = crd.Spec.Names
	at := metav1.NewTime(crd.CreationTimestamp.Add(-establishedBefore))
	for _, condition := range []apiextensionsv1.CustomResourceDefinitionCondition{
		{Type: apiextensionsv1.NamesAccepted, Reason: "NoConflicts", Message: "no conflicts found"},
		{Type: apiextensionsv1.Established, Reason: "InitialNamesAccepted", Message: "the initial names have been accepted"},
	} {
		condition.Status = apiextensionsv1.ConditionTrue
		apiextensionshelpers.SetCRDCondition(crd, condition)
		apiextensionshelpers.FindCRDCondition(crd, condition.Type).LastTransitionTime = at
	}
}
