package manifest

import (
	"cmp"
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

const (
	// fieldManager is the field manager of all writes.
	fieldManager = "gardenlite"
	// A manifest may need something that a controller creates for another one (a namespace, an API). So those that
	// failed are applied again every applyRetry, until none of them could be applied for applyTimeout.
	applyRetry   = 100 * time.Millisecond
	applyTimeout = 30 * time.Second
)

// Applier applies manifests with a client's rights.
type Applier struct {
	client  dynamic.Interface
	mapper  meta.ResettableRESTMapper
	timeout time.Duration
}

// NewApplier returns an Applier. It sends no requests yet.
func NewApplier(config *rest.Config) (*Applier, error) {
	config = ForWriting(config)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))
	return &Applier{client: client, mapper: mapper, timeout: applyTimeout}, nil
}

// ForWriting returns a copy of a client configuration for many writes at once, without the server's warnings.
func ForWriting(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// Path applies the manifests of a file, or of a directory and its subdirectories: namespaces first, then the others
// in the order of their files. Manifests that refer to later ones are retried after these. The error names the file
// and the document of each manifest that could not be applied; the others are applied.
func (a *Applier) Path(ctx context.Context, path string) error {
	objects, err := loadPath(path)
	if err != nil {
		return err
	}
	return a.All(ctx, objects)
}

// All applies objects in order, and retries those that failed while others succeed: they may depend on one another.
func (a *Applier) All(ctx context.Context, objects []Object) error {
	namespaces, others := split(objects)
	pending := append(namespaces, others...)
	ticker := time.NewTicker(applyRetry)
	defer ticker.Stop()
	progress := time.Now()
	for {
		failed, errs, hopeless := a.pass(ctx, pending)
		switch {
		case len(failed) == 0:
			return nil
		case ctx.Err() != nil:
			return errors.Join(errs...)
		case len(failed) < len(pending):
			progress = time.Now()
		case hopeless || time.Since(progress) > a.timeout:
			return errors.Join(errs...)
		default:
			select {
			case <-ctx.Done():
				return errors.Join(errs...)
			case <-ticker.C:
			}
		}
		pending = failed
		// There may be new APIs.
		a.mapper.Reset()
	}
}

// pass applies each object once. hopeless is true if an object failed with an error that only its author can correct.
func (a *Applier) pass(ctx context.Context, objects []Object) (failed []Object, errs []error, hopeless bool) {
	for _, obj := range objects {
		if err := a.apply(ctx, obj); err != nil {
			failed, errs = append(failed, obj), append(errs, wrap(err, obj))
			hopeless = hopeless || !isRetriable(err)
		}
	}
	return failed, errs, hopeless
}

// isRetriable reports whether an error may go away by itself: a reference that does not exist yet (admission
// answers 403), a kind that is not served yet, a webhook that does not answer yet, a conflict.
func isRetriable(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsForbidden(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || discovery.IsGroupDiscoveryFailedError(err) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err)
}

func (a *Applier) apply(ctx context.Context, obj Object) error {
	gvk := obj.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return err
	}
	namespace := ""
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace = cmp.Or(obj.GetNamespace(), metav1.NamespaceDefault)
	}
	_, err = a.client.Resource(mapping.Resource).Namespace(namespace).Apply(ctx, obj.GetName(), obj.Unstructured,
		metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	return err
}
