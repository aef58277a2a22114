package kubecontrollers

import (
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const (
	// sharedUser is the user of the shared informers, as in a kube-controller-manager.
	sharedUser = "system:kube-controller-manager"
	// serviceAccountUser is the prefix of the user of a controller with its own identity. Its role is
	// system:controller:<name>.
	serviceAccountUser = "system:serviceaccount:kube-system:"
)

var serviceAccountGroups = []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}

// clients creates clients and closes their connections in the end.
type clients struct {
	config func(component, user string, groups ...string) (*rest.Config, error)
	made   []*client
}

// client is the client of a controller: one HTTP client for typed objects and for metadata.
type client struct {
	kubernetes.Interface
	metadata metadata.Interface
	http     *http.Client
}

func (c *clients) shared() (*client, error) {
	return c.make("kube-controller-manager", sharedUser)
}

func (c *clients) serviceAccount(name string) (*client, error) {
	return c.make(name, serviceAccountUser+name, serviceAccountGroups...)
}

func (c *clients) make(component, user string, groups ...string) (*client, error) {
	config, err := c.config(component, user, groups...)
	if err != nil {
		return nil, err
	}
	// Priority and fairness protects the server, and the queues of the controllers have their own rate limits.
	config.QPS = -1
	made := &client{}
	if made.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, err
	}
	if made.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), made.http); err != nil {
		return nil, err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	if made.Interface, err = kubernetes.NewForConfigAndClient(config, made.http); err != nil {
		return nil, err
	}
	c.made = append(c.made, made)
	return made, nil
}

// close closes idle connections. Otherwise client and server would keep them for minutes.
func (c *clients) close() {
	for _, made := range c.made {
		utilnet.CloseIdleConnectionsFor(made.http.Transport)
	}
}
