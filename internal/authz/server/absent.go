package server

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8sauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

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
