package gardenlet

import (
	"context"
	"net/http"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// ofOneSeed is the key of a context whose requests are for an object of one seed.
type ofOneSeed struct{}

// notOfSeed answers 404 instead of 403 to these requests: the gardenlet may read the objects of its seed, so one that is
// forbidden is not there, or not of this seed any more.
type notOfSeed struct{ next http.RoundTripper }

func (t *notOfSeed) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusForbidden && r.Context().Value(ofOneSeed{}) != nil {
		_ = response.Body.Close()
		response.StatusCode, response.Status = http.StatusNotFound, http.StatusText(http.StatusNotFound)
		response.Body, response.ContentLength = http.NoBody, 0
		response.Header.Del("Content-Length")
	}
	return response, err
}

// WrappedRoundTripper returns the wrapped RoundTripper, so that its idle connections can be closed.
func (t *notOfSeed) WrappedRoundTripper() http.RoundTripper { return t.next }

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
	limit := r.limit
	if isOfOneSeed(obj) {
		cached := obj.DeepCopyObject().(client.Object)
		if err := r.client.Get(ctx, key, cached); apierrors.IsNotFound(err) {
			limit = 0
		} else if err != nil {
			return err
		}
		ctx = context.WithValue(ctx, ofOneSeed{}, true)
	}
	id := attributes.Group + "/" + attributes.Resource + "/" + key.String()
	if _, known := r.readable.Get(id); !known || limit == 0 {
		if allowed, err := r.waitAllowed(ctx, attributes, limit); err != nil {
			return err
		} else if !allowed && isOfOneSeed(obj) {
			return apierrors.NewNotFound(schema.GroupResource{Group: attributes.Group, Resource: attributes.Resource}, key.Name)
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

// isOfOneSeed reports whether an object belongs to one seed.
func isOfOneSeed(obj client.Object) bool {
	switch obj.(type) {
	case *corev1beta1.Shoot, *corev1beta1.ControllerInstallation, *operationsv1alpha1.Bastion,
		*seedmanagementv1alpha1.ManagedSeed, *seedmanagementv1alpha1.Gardenlet:
		return true
	}
	return false
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

// waitAllowed waits until the object may be read, or for a timeout: then a read fails with the reason.
func (r *liveReader) waitAllowed(ctx context.Context, attributes *authorizationv1.ResourceAttributes,
	limit time.Duration) (bool, error) {
	for begin := time.Now(); ; {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
		if err := r.client.Create(ctx, review); err != nil {
			return false, err
		}
		if review.Status.Allowed || time.Since(begin) >= limit {
			return review.Status.Allowed, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(accessInterval):
		}
	}
}
