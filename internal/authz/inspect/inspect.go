package inspect

import (
	"context"
	"fmt"
	"strings"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/gardenlite/gardenlite/internal/authz/authorizer"
	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/usage"
)

// User is the user whose access is explained. Exactly one of the fields is set.
type User struct {
	// Seed is the name of the gardenlet's seed.
	Seed string `json:"seed,omitempty"`
	// Extension is NAMESPACE/NAME of the ServiceAccount of an extension on a seed.
	Extension string `json:"extension,omitempty"`
	// Stack is NAMESPACE/NAME of a stack.
	Stack string `json:"stack,omitempty"`
}

// Validate returns a usage error unless exactly one field is set, to a valid value.
func (u User) Validate() error {
	_, err := u.info()
	return err
}

// info returns the user as the garden authenticates it.
func (u User) info() (*user.DefaultInfo, error) {
	account, flag, example := u.Extension, "--as-extension", "the extension's ServiceAccount, such as seed-local/extension-provider-local"
	given := 0
	for _, one := range []string{u.Seed, u.Extension, u.Stack} {
		if one != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, usage.Errorf("say for whom, with one of --as-seed NAME, --as-extension NAMESPACE/NAME and --as-stack NAMESPACE/NAME")
	case u.Seed != "":
		return &user.DefaultInfo{Name: constants.SeedUserNamePrefix + u.Seed, Groups: []string{constants.SeedsGroup, user.AllAuthenticated}}, nil
	case u.Stack != "":
		account, flag, example = u.Stack, "--as-stack", "the stack, such as dev/wordpress"
	}
	namespace, name, found := strings.Cut(account, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, usage.Errorf("%s %q: say NAMESPACE/NAME of %s", flag, account, example)
	}
	return &user.DefaultInfo{
		Name:   serviceaccount.MakeUsername(namespace, name),
		Groups: append(serviceaccount.MakeGroupNames(namespace), user.AllAuthenticated),
	}, nil
}

// Inspector explains access to a garden.
type Inspector struct {
	graph      *graph.Graph
	authorizer *authorizer.Authorizer
	page       string
	kube       kubernetes.Interface
	metadata   metadata.Interface
}

// New returns an Inspector that decides with the graph and authorizer, and reads the garden as its administrator. page
// is the address of the debug page, "" if there is none.
func New(admin *rest.Config, g *graph.Graph, a *authorizer.Authorizer, page string) (*Inspector, error) {
	config := rest.CopyConfig(admin)
	config.QPS = -1 // the API server limits the rate itself
	config.WarningHandler = rest.NoWarnings{}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the garden: %w", err)
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the garden: %w", err)
	}
	return &Inspector{graph: g, authorizer: a, page: page, kube: kube, metadata: objects}, nil
}

// exists reports whether an object exists, true also if that cannot be determined.
func (i *Inspector) exists(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) bool {
	_, err := i.metadata.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	return !apierrors.IsNotFound(err)
}
