// Package registry provides the storage of the Gardener API groups. Each group has a folder, with a Definition for
// each resource. Package resource creates the storage from the Definitions. It may import scheme, validation and
// admission/plugin.
package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardenoperations "github.com/gardener/gardener/pkg/apis/operations"
	gardensecurity "github.com/gardener/gardener/pkg/apis/security"
	gardenseedmanagement "github.com/gardener/gardener/pkg/apis/seedmanagement"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/registry/core"
	"github.com/gardenlite/gardenlite/internal/garden/registry/core/shootkubeconfig"
	"github.com/gardenlite/gardenlite/internal/garden/registry/operations"
	"github.com/gardenlite/gardenlite/internal/garden/registry/resource"
	"github.com/gardenlite/gardenlite/internal/garden/registry/security"
	"github.com/gardenlite/gardenlite/internal/garden/registry/seedmanagement"
)

// Group is the storage of an API group.
type Group struct {
	Name string
	// Versions has the storage by version and path.
	Versions map[string]map[string]rest.Storage
}

// Config configures the storage.
type Config struct {
	Clock clock.PassiveClock
	// ConfigMaps reads ConfigMaps from the kube-apiserver.
	ConfigMaps shootkubeconfig.ConfigMaps
	// Kubeconfigs are the settings of the subresources adminkubeconfig and viewerkubeconfig of Shoots.
	Kubeconfigs shootkubeconfig.Options
	// Authorizer decides what the callers of these subresources may do in the garden.
	Authorizer authorizer.Authorizer
	// Issuer signs the tokens of WorkloadIdentities.
	Issuer *security.Issuer
	// BastionTimeToLive is how long Bastions live after a heartbeat; operations.DefaultTimeToLive if 0.
	BastionTimeToLive time.Duration
}

// New returns the storage of all groups, and a reader with which admission plugins read from it.
func New(getter generic.RESTOptionsGetter, cfg Config) ([]Group, *Reader, error) {
	reader := &Reader{stores: map[schema.GroupResource]*resource.Store{}} // is not used before all storage is added
	coreStorage, errCore := core.Storage(getter, cfg.Clock, shootkubeconfig.Config{
		Options: cfg.Kubeconfigs, ConfigMaps: cfg.ConfigMaps, Authorizer: cfg.Authorizer})
	operationsStorage, errOperations := operations.Storage(getter, cfg.Clock, cfg.BastionTimeToLive)
	securityStorage, errSecurity := security.Storage(getter, reader, cfg.Issuer)
	seedStorage, errSeed := seedmanagement.Storage(getter)
	groups := []Group{
		{gardencore.GroupName, coreStorage},
		{gardenoperations.GroupName, operationsStorage},
		{gardensecurity.GroupName, securityStorage},
		{gardenseedmanagement.GroupName, seedStorage},
	}
	if err := errors.Join(errCore, errOperations, errSecurity, errSeed); err != nil {
		return nil, nil, err
	}
	reader.add(groups)
	return groups, reader, nil
}

// Reader reads the objects as they are stored, in their internal version.
type Reader struct {
	stores map[schema.GroupResource]*resource.Store
	fresh  bool
}

var _ plugin.Reader = &Reader{}

// Fresh returns a reader whose lists are consistent reads.
func (r *Reader) Fresh() plugin.Reader { return &Reader{r.stores, true} }

func (r *Reader) add(groups []Group) {
	for _, group := range groups {
		for _, storage := range group.Versions {
			for path, s := range storage {
				if store, ok := s.(*resource.Store); ok && !strings.Contains(path, "/") {
					r.stores[schema.GroupResource{Group: group.Name, Resource: path}] = store
				}
			}
		}
	}
}

// Get implements plugin.Reader.
func (r *Reader) Get(ctx context.Context, gr schema.GroupResource, namespace, name string) (runtime.Object, error) {
	store, err := r.store(gr)
	if err != nil {
		return nil, err
	}
	// The names come from objects that may not have been validated yet.
	if name == "" || len(path.IsValidPathSegmentName(name)) > 0 || len(path.IsValidPathSegmentName(namespace)) > 0 {
		return nil, apierrors.NewNotFound(gr, name)
	}
	return store.Get(genericapirequest.WithNamespace(ctx, namespace), name, &metav1.GetOptions{})
}

// List implements plugin.Reader. It answers from the watch cache, which is a few milliseconds behind at most. If the
// result is empty, it lists again with a consistent read, so that it does not miss an object that has just been
// created.
func (r *Reader) List(ctx context.Context, gr schema.GroupResource, namespace string, selector fields.Selector) ([]runtime.Object, error) {
	store, err := r.store(gr)
	if err != nil {
		return nil, err
	}
	ctx = genericapirequest.WithNamespace(ctx, namespace)
	versions := []string{"0", ""}
	if r.fresh {
		versions = versions[1:]
	}
	for _, version := range versions {
		options := &metainternalversion.ListOptions{FieldSelector: selector, ResourceVersion: version}
		list, err := whenReady(ctx, func() (runtime.Object, error) { return store.List(ctx, options) })
		if err != nil {
			return nil, err
		}
		if objs, err := meta.ExtractList(list); err != nil || len(objs) > 0 {
			return objs, err
		}
	}
	return nil, nil
}

// ByIndex implements plugin.Reader.
func (r *Reader) ByIndex(ctx context.Context, gr schema.GroupResource, index, value string) ([]runtime.Object, error) {
	store, err := r.store(gr)
	if err != nil {
		return nil, err
	}
	var objs []runtime.Object
	_, err = whenReady(ctx, func() (_ runtime.Object, err error) {
		objs, err = store.ByIndex(ctx, index, value)
		return nil, err
	})
	return objs, err
}

// whenReady repeats a list that the watch cache refuses with 429 while it is filled anew. The error of a plugin becomes a 500,
// after which clients do not try again.
func whenReady(ctx context.Context, read func() (runtime.Object, error)) (runtime.Object, error) {
	for {
		list, err := read()
		if !apierrors.IsTooManyRequests(err) {
			return list, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (r *Reader) store(gr schema.GroupResource) (*resource.Store, error) {
	store, ok := r.stores[gr]
	if !ok {
		return nil, fmt.Errorf("no storage for %s", gr)
	}
	return store, nil
}
