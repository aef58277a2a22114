package shoot

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/seed/shootaccess"
)

// accessTimeout is how long a request to a shoot may take.
const accessTimeout = 30 * time.Second

// ShootClient is a client for the API of a shoot.
type ShootClient struct {
	client.Client
	// Metadata reads and patches the metadata of objects of any resource.
	Metadata metadata.Interface
	// Resources returns the resources that the API server serves.
	Resources func() ([]*metav1.APIResourceList, error)
	// Close closes the connections of the client.
	Close func()
}

// close closes the client with which the operation accesses the shoot.
func (b *botanist) close() {
	if b.shootClient != nil {
		b.shootClient.Close()
		b.shootClient = nil
	}
}

// connect creates a client for the shoot, with a certificate that is used for this operation only.
func (b *botanist) connect(ctx context.Context) error {
	made, err := b.connectTo(ctx, b.namespace())
	if err != nil {
		return err
	}
	b.close()
	b.shootClient = made
	return nil
}

func (r *Reconciler) connectTo(ctx context.Context, technicalID string) (*ShootClient, error) {
	config, err := shootaccess.New(ctx, r.SeedReader, technicalID, shootaccess.User, r.Clock)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Timeout = -1, accessTimeout
	create := newShootClient
	if r.NewShootClient != nil {
		create = r.NewShootClient
	}
	made, err := create(config, r.Clock)
	if err != nil {
		return nil, fmt.Errorf("making a client for the shoot at %s: %w", config.Host, err)
	}
	return made, nil
}

func newShootClient(config *rest.Config, clk clock.PassiveClock) (*ShootClient, error) {
	cluster, err := shootaccess.NewCluster(config, clk, false)
	if err != nil {
		return nil, err
	}
	discoverer, err := discovery.NewDiscoveryClientForConfigAndClient(config, cluster.HTTP)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), cluster.HTTP)
	if err != nil {
		return nil, err
	}
	return &ShootClient{Client: cluster.Client, Metadata: objects, Close: cluster.HTTP.CloseIdleConnections,
		Resources: func() ([]*metav1.APIResourceList, error) {
			_, resources, err := discoverer.ServerGroupsAndResources()
			if err != nil && !discovery.IsGroupDiscoveryFailedError(err) { // API groups of users may be unavailable
				return nil, err
			}
			return resources, nil
		}}, nil
}
