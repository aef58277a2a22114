package controlplane

import (
	"context"
	"slices"
	"strings"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/union"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
)

const (
	// nodeAgentPrefix begins the names of the Secrets with the OperatingSystemConfigs of a shoot's pools, and those of the Leases of
	// the agents.
	nodeAgentPrefix = "gardener-node-agent-"
	// nodeUserPrefix begins the user name of a node.
	nodeUserPrefix = "system:node:"
)

// withNodeAgents allows machines and nodes to read the OperatingSystemConfigs of their shoot, and the Stages of its Pods, and a node to
// act as its agent, which has a Lease. It stands in for the webhook of gardener-resource-manager that authorizes gardener-node-agent.
func withNodeAgents(next authorizer.Authorizer) authorizer.Authorizer {
	return union.New(next, authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.IsResourceRequest() && a.GetSubresource() == "" && (nodeMay(a) || agentMay(a)) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	}))
}

func nodeMay(a authorizer.Attributes) bool {
	groups := a.GetUser().GetGroups()
	isNode := slices.Contains(groups, user.NodesGroup)
	if !isNode && !slices.Contains(groups, bootstrapapi.BootstrapDefaultGroup) {
		return false
	}
	switch a.GetResource() + "." + a.GetAPIGroup() {
	case "secrets.":
		return slices.Contains([]string{"get", "watch"}, a.GetVerb()) && a.GetNamespace() == metav1.NamespaceSystem &&
			strings.HasPrefix(a.GetName(), nodeAgentPrefix)
	case "stages.kwok.x-k8s.io":
		return isNode && slices.Contains([]string{"list", "watch"}, a.GetVerb())
	case "customresourcedefinitions.apiextensions.k8s.io":
		return isNode && a.GetVerb() == "watch" && a.GetName() == "stages.kwok.x-k8s.io"
	case "users.":
		name, ok := strings.CutPrefix(a.GetUser().GetName(), nodeUserPrefix)
		return isNode && ok && name != "" && a.GetVerb() == "impersonate" && a.GetName() == constants.NodeAgentUserNamePrefix+name
	}
	return false
}

func agentMay(a authorizer.Attributes) bool {
	name, ok := strings.CutPrefix(a.GetUser().GetName(), constants.NodeAgentUserNamePrefix)
	return ok && name != "" && a.GetAPIGroup() == "coordination.k8s.io" && a.GetResource() == "leases" &&
		slices.Contains([]string{"create", "patch"}, a.GetVerb()) && a.GetNamespace() == metav1.NamespaceSystem &&
		a.GetName() == nodeAgentPrefix+name
}
