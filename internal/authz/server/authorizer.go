package server

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	k8sauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/graphsync"
)

const (
	// waitLimit is how long a request waits until the graph has the current version of an object. That takes
	// milliseconds, unless the machine is busy.
	waitLimit = time.Second
	waitStep  = 2 * time.Millisecond
	// waitRate and waitBurst limit, per second and at once, the refused requests for which the garden is asked whether
	// the graph is behind. Others are refused immediately.
	waitRate  = 50
	waitBurst = 100
)

// waiting is an authorizer that decides again if the graph did not have the current version of an object. A gardenlet
// may already have it: it watches the same API server over another connection, which may be slightly faster.
type waiting struct {
	k8sauthorizer.Authorizer
	seen func(kind graph.Kind, resourceVersion string) bool
	// version returns the resource version of an object in the garden, "" if it does not exist.
	version func(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (string, error)
	watched map[schema.GroupResource]graphsync.Resource
	limit   *rate.Limiter
}

func waitForGraph(inner k8sauthorizer.Authorizer, seen func(graph.Kind, string) bool, client dynamic.Interface) *waiting {
	w := &waiting{
		Authorizer: inner, seen: seen, watched: map[schema.GroupResource]graphsync.Resource{},
		limit: rate.NewLimiter(waitRate, waitBurst),
	}
	for _, resource := range graphsync.Resources() {
		w.watched[resource.GroupResource()] = resource
	}
	w.version = func(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (string, error) {
		list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{
			// From the watch cache, which has everything that a gardenlet's watch may have received.
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(), ResourceVersion: "0",
		})
		if err != nil || len(list.Items) == 0 {
			return "", err
		}
		return list.Items[0].GetResourceVersion(), nil
	}
	return w
}

// Authorize decides, and decides again if the graph was behind.
func (w *waiting) Authorize(ctx context.Context, attrs k8sauthorizer.Attributes) (k8sauthorizer.Decision, string, error) {
	decision, reason, err := w.Authorizer.Authorize(ctx, attrs)
	if err != nil || decision == k8sauthorizer.DecisionAllow || !w.wasBehind(ctx, attrs) {
		return decision, reason, err
	}
	return w.Authorizer.Authorize(ctx, attrs)
}

// wasBehind reports whether the graph may not have had the current version of the object, but has it now.
func (w *waiting) wasBehind(ctx context.Context, attrs k8sauthorizer.Attributes) bool {
	resource, watched := w.watched[schema.GroupResource{Group: attrs.GetAPIGroup(), Resource: attrs.GetResource()}]
	if !watched || attrs.GetName() == "" || attrs.GetVerb() == "create" && attrs.GetSubresource() == "" || !w.limit.Allow() {
		return false
	}
	version, err := w.version(ctx, resource.GroupVersionResource, attrs.GetNamespace(), attrs.GetName())
	if err != nil || version == "" {
		return false
	}
	seen := func(context.Context) (bool, error) { return w.seen(resource.Kind, version), nil }
	return wait.PollUntilContextTimeout(ctx, waitStep, waitLimit, true, seen) == nil
}

// absent is an authorizer that decides on deletions of objects that are not in the graph by the rules of admission: the
// graph does not contain all Secrets, nor a BackupEntry that was just created. So a gardenlet can delete such objects,
// and the answer for another seed's object does not depend on its existence.
type absent struct {
	k8sauthorizer.Authorizer
	has       func(graph.Vertex) bool
	mayDelete func(ctx context.Context, who authenticationv1.UserInfo, resource schema.GroupResource, namespace, name string) (bool, error)
}

// Authorize decides, and decides again about objects that are not in the graph.
func (a absent) Authorize(ctx context.Context, attrs k8sauthorizer.Attributes) (k8sauthorizer.Decision, string, error) {
	decision, reason, err := a.Authorizer.Authorize(ctx, attrs)
	if err != nil || decision == k8sauthorizer.DecisionAllow || attrs.GetVerb() != "delete" || attrs.GetSubresource() != "" ||
		attrs.GetUser() == nil {
		return decision, reason, err
	}
	vertex, ok := authorizer.VertexOf(attrs)
	if !ok || a.has(vertex) {
		return decision, reason, err
	}
	who := authenticationv1.UserInfo{Username: attrs.GetUser().GetName(), UID: attrs.GetUser().GetUID(), Groups: attrs.GetUser().GetGroups()}
	resource := schema.GroupResource{Group: attrs.GetAPIGroup(), Resource: attrs.GetResource()}
	// A failure does not change the answer: this would reveal that the object exists.
	if allowed, err := a.mayDelete(ctx, who, resource, vertex.Namespace, vertex.Name); err != nil || !allowed {
		return decision, reason, nil
	}
	return k8sauthorizer.DecisionAllow, "allowed: the object is the seed's by its name or its owner", nil
}
