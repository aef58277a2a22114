package kubecontrollers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

const discoveryTimeout = 30 * time.Second

// freshDiscovery is a discovery client that is never stale and cheap: it asks the server whether something has changed,
// and reads the resources only then. So controllers can call it often, and soon know a new custom resource.
type freshDiscovery struct {
	discovery.DiscoveryInterface
	http *http.Client

	lock sync.Mutex
	tags map[string]string
	// resources is the result for the tags. It is immutable.
	resources []*metav1.APIResourceList
}

// ServerPreferredResources returns all resources, each in the version that the server prefers.
func (d *freshDiscovery) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	// The tags are read before the resources: if there is a change in between, the tags differ the next time.
	tags, err := d.currentTags()
	if err != nil {
		return nil, err
	}
	if tags != nil && maps.Equal(tags, d.tags) {
		return d.resources, nil
	}
	resources, err := d.DiscoveryInterface.ServerPreferredResources()
	if err != nil {
		d.tags = nil
		return resources, err
	}
	d.tags, d.resources = tags, resources
	return resources, nil
}

// ServerPreferredNamespacedResources returns the preferred resources that are namespaced.
func (d *freshDiscovery) ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error) {
	all, err := d.ServerPreferredResources()
	return discovery.FilteredBy(discovery.ResourcePredicateFunc(func(_ string, r *metav1.APIResource) bool { return r.Namespaced }), all), err
}

// currentTags returns the entity tags of the two documents that discovery reads, nil if the server has none.
func (d *freshDiscovery) currentTags() (map[string]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), discoveryTimeout)
	defer cancel()
	tags := map[string]string{}
	for _, path := range []string{"/api", "/apis"} {
		tag, err := d.tag(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("asking the API server for %s: %w", path, err)
		}
		if tag == "" {
			return nil, nil
		}
		tags[path] = tag
	}
	return tags, nil
}

func (d *freshDiscovery) tag(ctx context.Context, path string) (_ string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.RESTClient().Get().AbsPath(path).URL().String(), nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Accept", discovery.AcceptV2)
	if tag := d.tags[path]; tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	response, err := d.http.Do(request)
	if err != nil {
		return "", err
	}
	// A connection is reused only if the body has been read to its end.
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return "", err
	}
	switch response.StatusCode {
	case http.StatusNotModified:
		return d.tags[path], nil
	case http.StatusOK:
		return response.Header.Get("ETag"), nil
	default:
		return "", fmt.Errorf("the answer is %s", response.Status)
	}
}
