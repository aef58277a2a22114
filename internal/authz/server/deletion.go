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

// access implements restriction.Access with the graph.
type access struct {
	authorizer *authorizer.Authorizer
	graph      *graph.Graph
	seeds      func() []string
	synced     func() bool
}

var _ restriction.Access = access{}

// MayDelete reports whether an existing object leads to the user's seed and to no other.
func (a access) MayDelete(ctx context.Context, who authenticationv1.UserInfo, resource schema.GroupResource, namespace,
	name string) (bool, string, error) {
	vertex, err := a.vertexOf(resource, namespace, name)
	if err != nil {
		return false, "", err
	}
	decision, reason, err := a.authorizer.Authorize(ctx, attributesOf(who, "delete", resource, namespace, name))
	if err != nil || decision != k8sauthorizer.DecisionAllow {
		return false, reason, err
	}
	if a.otherSeed(who, vertex, func(string) bool { return false }) {
		return false, "it has a path to another seed too", nil
	}
	return true, reason, nil
}

// MayRead reports whether the user may get an object, if it exists.
func (a access) MayRead(ctx context.Context, who authenticationv1.UserInfo, resource schema.GroupResource, namespace, name string) bool {
	decision, _, err := a.authorizer.Authorize(ctx, attributesOf(who, "get", resource, namespace, name))
	return err == nil && decision == k8sauthorizer.DecisionAllow && a.synced()
}

// OtherSeed reports whether an object leads to a seed that is neither the user's nor runs on one of its shoots.
func (a access) OtherSeed(_ context.Context, who authenticationv1.UserInfo, resource schema.GroupResource, namespace,
	name string) (bool, error) {
	vertex, err := a.vertexOf(resource, namespace, name)
	if err != nil {
		return false, err
	}
	own := seedidentity.OfAuthentication(who).Seed
	return a.otherSeed(who, vertex, func(seed string) bool {
		return a.graph.HasPath(graph.Vertex{Kind: graph.KindSeed, Name: seed}, own)
	}), nil
}

// vertexOf returns the vertex of an object, or an error if the graph cannot be asked about it now.
func (a access) vertexOf(resource schema.GroupResource, namespace, name string) (graph.Vertex, error) {
	kind, known := deletable[resource]
	switch {
	case !a.synced():
		return graph.Vertex{}, errors.New("the resource dependency graph is not up to date; try again in a moment")
	case !known:
		return graph.Vertex{}, fmt.Errorf("the graph is not asked about %s", resource)
	}
	return graph.Vertex{Kind: kind, Namespace: namespace, Name: name}, nil
}

// otherSeed checks every seed, because the graph only knows whether a vertex leads to a given seed.
func (a access) otherSeed(who authenticationv1.UserInfo, vertex graph.Vertex, mayUse func(seed string) bool) bool {
	own := seedidentity.OfAuthentication(who).Seed
	for _, seed := range a.seeds() {
		if seed != own && a.graph.HasPath(vertex, seed) && !mayUse(seed) {
			return true
		}
	}
	return false
}

func attributesOf(who authenticationv1.UserInfo, verb string, resource schema.GroupResource, namespace,
	name string) k8sauthorizer.AttributesRecord {
	return k8sauthorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: who.Username, UID: who.UID, Groups: who.Groups}, Verb: verb,
		APIGroup: resource.Group, Resource: resource.Resource, Namespace: namespace, Name: name, ResourceRequest: true,
	}
}

// deletable are the kinds that are not watched and have objects that gardenlets may delete.
var deletable = map[schema.GroupResource]graph.Kind{
	{Resource: "secrets"}:    graph.KindSecret,
	{Resource: "configmaps"}: graph.KindConfigMap,
	{Group: gardencorev1beta1.GroupName, Resource: "internalsecrets"}: graph.KindInternalSecret,
	{Group: gardencorev1beta1.GroupName, Resource: "shootstates"}:     graph.KindShootState,
}
