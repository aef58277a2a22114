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
	// sharedUser is who the informers that controllers share are, as in a kube-controller-manager.
	sharedUser = "system:kube-controller-manager"
	// serviceAccountUser is the beginning of who a controller of its own is. Its role is system:controller:<name>.
	serviceAccountUser = "system:serviceaccount:kube-system:"
)

var serviceAccountGroups = []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}

// clients makes clients and closes their connections in the end.
type clients struct {
	config func(component, user string, groups ...string) (*rest.Config, error)
	made   []*client
}

// client is what a controller has of the API server: one HTTP client for typed objects and for metadata.
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
	// Priority and fairness protects the server, and the queues of the controllers have their own limits.
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

// close closes idle connections. Otherwise client and server keep them for minutes.
func (c *clients) close() {
	for _, made := range c.made {
		utilnet.CloseIdleConnectionsFor(made.http.Transport)
	}
}
