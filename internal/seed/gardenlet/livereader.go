package gardenlet

import (
	"context"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

const (
	// accessTimeout is how long the garden may take to learn that an object is related to the seed. It usually takes
	// milliseconds, unless the machine is busy.
	accessTimeout  = time.Second
	accessInterval = 10 * time.Millisecond
)

// gardenCluster is the garden with a liveReader.
type gardenCluster struct {
	cluster.Cluster
	reader client.Reader
}

// GetAPIReader returns the liveReader.
func (g *gardenCluster) GetAPIReader() client.Reader { return g.reader }

// liveReader reads directly from the garden. Before it reads an object for the first time, it waits until it may: the
// garden's authorizer may not have seen yet that an object of the seed refers to it.
type liveReader struct {
	client.Reader
	client client.Client
	limit  time.Duration
	// readable contains up to maxReadable objects that could be read before.
	readable *lru.Cache
}

const maxReadable = 10000

func newLiveReader(inner client.Reader, c client.Client) *liveReader {
	return &liveReader{Reader: inner, client: c, limit: accessTimeout, readable: lru.New(maxReadable)}
}

// Get reads one object.
func (r *liveReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	attributes, err := r.attributes(key, obj)
	if err != nil {
		return err
	}
	id := attributes.Group + "/" + attributes.Resource + "/" + key.String()
	if _, known := r.readable.Get(id); !known {
		if err := r.waitAllowed(ctx, attributes); err != nil {
			return err
		}
	}
	err = r.Reader.Get(ctx, key, obj, opts...)
	if err == nil {
		r.readable.Add(id, nil)
	} else {
		r.readable.Remove(id)
	}
	return err
}

func (r *liveReader) attributes(key client.ObjectKey, obj client.Object) (*authorizationv1.ResourceAttributes, error) {
	gvk, err := apiutil.GVKForObject(obj, r.client.Scheme())
	if err != nil {
		return nil, err
	}
	mapping, err := r.client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	a := &authorizationv1.ResourceAttributes{Verb: "get", Group: mapping.Resource.Group, Version: mapping.Resource.Version,
		Resource: mapping.Resource.Resource, Name: key.Name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		a.Namespace = key.Namespace
	}
	return a, nil
}

// waitAllowed waits until the object may be read, or for a timeout: then the read fails with the reason.
func (r *liveReader) waitAllowed(ctx context.Context, attributes *authorizationv1.ResourceAttributes) error {
	for begin := time.Now(); ; {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
		if err := r.client.Create(ctx, review); err != nil {
			return err
		}
		if review.Status.Allowed || time.Since(begin) >= r.limit {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(accessInterval):
		}
	}
}
