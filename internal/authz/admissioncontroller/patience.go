package admissioncontroller

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8sauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/sync"
)

const (
	// patienceLimit is how long is waited for the graph to hear of an object as it is. It hears of it within milliseconds,
	// unless the machine has a lot to do.
	patienceLimit = time.Second
	patienceStep  = 2 * time.Millisecond
	// Requests in a second, and at once, for which is looked whether the graph is behind: who asks for much that it may not
	// have gets its refusals at once.
	patienceRate  = 50
	patienceBurst = 100
)

// patient is an authorizer that asks once more where the graph has not heard of an object, or of its last change. A gardenlet
// may have: it watches the same API server, over another connection, and may be a little faster than the graph to see what
// somebody made for it.
type patient struct {
	k8sauthorizer.Authorizer
	seen func(kind graph.Kind, resourceVersion string) bool
	// version looks in the garden which version of an object there is, "" if there is none.
	version func(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (string, error)
	watched map[schema.GroupResource]sync.Resource
	limit   *rate.Limiter
}

func newPatient(inner k8sauthorizer.Authorizer, seen func(graph.Kind, string) bool, client dynamic.Interface) *patient {
	p := &patient{
		Authorizer: inner, seen: seen, watched: map[schema.GroupResource]sync.Resource{},
		limit: rate.NewLimiter(patienceRate, patienceBurst),
	}
	for _, resource := range sync.Resources() {
		p.watched[resource.GroupResource()] = resource
	}
	p.version = func(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (string, error) {
		list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{
			// From the watch cache as it is: all that a gardenlet's watch can have told has gone through that.
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(), ResourceVersion: "0",
		})
		if err != nil || len(list.Items) == 0 {
			return "", err
		}
		return list.Items[0].GetResourceVersion(), nil
	}
	return p
}

// Authorize decides.
func (p *patient) Authorize(ctx context.Context, attrs k8sauthorizer.Attributes) (k8sauthorizer.Decision, string, error) {
	decision, reason, err := p.Authorizer.Authorize(ctx, attrs)
	if err != nil || decision == k8sauthorizer.DecisionAllow || !p.wasBehind(ctx, attrs) {
		return decision, reason, err
	}
	return p.Authorizer.Authorize(ctx, attrs)
}

// wasBehind says whether the graph may not have known of the object as it is, but does now.
func (p *patient) wasBehind(ctx context.Context, attrs k8sauthorizer.Attributes) bool {
	resource, watched := p.watched[schema.GroupResource{Group: attrs.GetAPIGroup(), Resource: attrs.GetResource()}]
	if !watched || attrs.GetName() == "" || attrs.GetVerb() == "create" && attrs.GetSubresource() == "" || !p.limit.Allow() {
		return false
	}
	version, err := p.version(ctx, resource.GroupVersionResource, attrs.GetNamespace(), attrs.GetName())
	if err != nil || version == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patienceLimit)
	defer cancel()
	ticker := time.NewTicker(patienceStep)
	defer ticker.Stop()
	for !p.seen(resource.Kind, version) {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}
