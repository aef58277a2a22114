package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

const (
	// fieldManager owns the fields that are applied.
	fieldManager = "gardenlite"
	// writers apply side by side.
	writers = 4
	// A manifest may need another one that controllers act on first (a namespace, a custom resource): it is tried again.
	applyRetry   = 100 * time.Millisecond
	applyTimeout = 30 * time.Second
)

// Applier applies manifests with a client's rights.
type Applier struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
}

// NewApplier makes an applier. Nothing is asked of the API server yet.
func NewApplier(config *rest.Config) (*Applier, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Applier{client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))}, nil
}

// Path applies the manifests of a file or directory: namespaces first, then the others in order, each tried again for
// a while if what it needs may still come.
func (a *Applier) Path(ctx context.Context, path string) error {
	objects, err := loadPath(path)
	if err != nil {
		return err
	}
	if len(objects) == 0 {
		return errors.New("there is no manifest in it (files end in .yaml, .yml or .json)")
	}
	namespaces, others := split(objects)
	for _, obj := range append(namespaces, others...) {
		if err := a.applyWithRetry(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// all applies objects side by side, namespaces first. They must not depend on each other.
func (a *Applier) all(ctx context.Context, objects []object) error {
	namespaces, others := split(objects)
	for _, objects := range [][]object{namespaces, others} {
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(writers)
		for _, obj := range objects {
			group.Go(func() error { return a.applyWithRetry(groupCtx, obj) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func split(objects []object) (namespaces, others []object) {
	for _, obj := range objects {
		if obj.GetKind() == "Namespace" && obj.GetAPIVersion() == "v1" {
			namespaces = append(namespaces, obj)
		} else {
			others = append(others, obj)
		}
	}
	return namespaces, others
}

func (a *Applier) applyWithRetry(ctx context.Context, obj object) error {
	ctx, cancel := context.WithTimeout(ctx, applyTimeout)
	defer cancel()
	ticker := time.NewTicker(applyRetry)
	defer ticker.Stop()
	for {
		err := a.apply(ctx, obj)
		if err == nil || !mayComeRight(err) {
			return wrap(err, obj)
		}
		select {
		case <-ctx.Done():
			return wrap(err, obj)
		case <-ticker.C:
		}
	}
}

func wrap(err error, obj object) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s %s: %w", obj.source, obj.GetKind(), obj.GetName(), err)
}

// mayComeRight says whether an error may go away by itself: a reference that is not there yet, a kind that is not served
// yet, a conflict.
func mayComeRight(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsForbidden(err)
}

func (a *Applier) apply(ctx context.Context, obj object) error {
	gvk := obj.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		a.mapper.Reset()
		return err
	}
	var client dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := obj.GetNamespace()
		if namespace == "" {
			namespace = metav1.NamespaceDefault
		}
		client = a.client.Resource(mapping.Resource).Namespace(namespace)
	}
	_, err = client.Apply(ctx, obj.GetName(), obj.Unstructured, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}
