package server

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8sauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// absent is an authorizer for deletions of objects that are not in the graph. It decides on them as admission does: the
// graph does not have every Secret, and not yet a BackupEntry that was just created. So what a gardenlet has left behind
// can be deleted, and the answer for another seed's object is the same whether it exists or not.
type absent struct {
	k8sauthorizer.Authorizer
	has       func(graph.Vertex) bool
	mayDelete func(ctx context.Context, who authenticationv1.UserInfo, resource schema.GroupResource, namespace, name string) (bool, error)
}

// Authorize decides, and once more on what the graph knows nothing of.
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
	// A failure is no reason for another answer: it would tell that there is something to fail for.
	if allowed, err := a.mayDelete(ctx, who, resource, vertex.Namespace, vertex.Name); err != nil || !allowed {
		return decision, reason, nil
	}
	return k8sauthorizer.DecisionAllow, "allowed: the object is the seed's by its name or its owner", nil
}
