package server

import (
	"context"
	"errors"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	k8sauthorizer "k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/restriction"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// access answers the restriction from the graph.
type access struct {
	authorizer *authorizer.Authorizer
	graph      *graph.Graph
	seeds      func() []string
	synced     func() bool
}

var _ restriction.Access = access{}

// MayDelete says whether an object that exists leads to the seed of who asks and to no other.
func (a access) MayDelete(ctx context.Context, who authenticationv1.UserInfo, resource schema.GroupResource, namespace, name string) (bool, string, error) {
	if !a.synced() {
		return false, "", errors.New("the resource dependency graph is not up to date; try again in a moment")
	}
	kind, known := deletable[resource]
	if !known {
		return false, "", fmt.Errorf("the graph is not asked about %s", resource)
	}
	decision, reason, err := a.authorizer.AuthorizeExisting(ctx, k8sauthorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: who.Username, UID: who.UID, Groups: who.Groups}, Verb: "delete",
		APIGroup: resource.Group, Resource: resource.Resource, Namespace: namespace, Name: name, ResourceRequest: true,
	})
	if err != nil || decision != k8sauthorizer.DecisionAllow {
		return false, reason, err
	}
	// Every seed is looked up, because the graph says of a vertex only whether it leads to this or that one.
	own, vertex := seedidentity.OfAuthentication(who).Seed, graph.Vertex{Kind: kind, Namespace: namespace, Name: name}
	for _, seed := range a.seeds() {
		if seed != own && a.graph.HasPath(vertex, seed) {
			return false, fmt.Sprintf("it has a path to seed %q too", seed), nil
		}
	}
	return true, reason, nil
}

// deletable are the kinds that are not watched, of which gardenlets may delete some.
var deletable = map[schema.GroupResource]graph.Kind{
	{Resource: "secrets"}:    graph.KindSecret,
	{Resource: "configmaps"}: graph.KindConfigMap,
	{Group: gardencorev1beta1.GroupName, Resource: "internalsecrets"}: graph.KindInternalSecret,
	{Group: gardencorev1beta1.GroupName, Resource: "shootstates"}:     graph.KindShootState,
}
