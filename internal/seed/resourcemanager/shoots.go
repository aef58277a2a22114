package resourcemanager

import (
	"context"
	"errors"
	"fmt"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/cluster"
	"github.com/gardenlite/gardenlite/internal/seed/shootaccess"
	"github.com/gardenlite/gardenlite/internal/seed/tokenrequestor"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// Shoots gives the resource manager access to the shoots of its seed. In Gardener, each shoot has a resource manager of its own.
// A shoot whose namespace has nothing to apply costs nothing.
type Shoots struct {
	// Seed reads directly from the seed.
	Seed     client.Reader
	clusters *shootaccess.Cache
	// connect returns a client of the shoot with the namespace.
	connect func(ctx context.Context, shoot types.NamespacedName, namespace string) (*shootaccess.Cluster, error)
}

// NewShoots returns the access to the shoots of a seed.
func NewShoots(seed client.Reader, clk clock.PassiveClock) *Shoots {
	clusters := &shootaccess.Cache{Seed: seed, Clock: clk, User: User, AllKinds: true}
	return &Shoots{Seed: seed, clusters: clusters, connect: clusters.Get}
}

// has reports whether a namespace of the seed has the control plane of a shoot.
func (s *Shoots) has(ctx context.Context, namespace string) (bool, error) {
	found := &corev1.Namespace{}
	if err := s.Seed.Get(ctx, client.ObjectKey{Name: namespace}, found); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return found.Labels[constants.GardenRole] == constants.GardenRoleShoot, nil
}

// target returns the shoot whose control plane is in the namespace, nil if its API server does not run at present. gone reports
// that it will not run again.
func (s *Shoots) target(ctx context.Context, namespace string) (found *target, gone bool, err error) {
	access, gone, err := s.reach(ctx, namespace)
	if access == nil || err != nil {
		return nil, gone, err
	}
	return &target{access.Client, access.Client, false}, false, nil
}

func (s *Shoots) reach(ctx context.Context, namespace string) (access *shootaccess.Cluster, gone bool, err error) {
	key := types.NamespacedName{Name: namespace}
	server := &appsv1.Deployment{}
	err = s.Seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: spec.APIServer}, server)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, false, fmt.Errorf("reading Deployment %s/%s, the API server of a shoot: %w", namespace, spec.APIServer, err)
	case err != nil || server.Status.ReadyReplicas == 0:
		s.clusters.Drop(key)
		ends, err := s.ends(ctx, namespace)
		return nil, ends, err
	}
	access, err = s.connect(ctx, key, namespace)
	if errors.Is(err, shootaccess.ErrNoEndpoint) {
		return nil, false, nil
	}
	return access, false, err
}

// ends reports whether a shoot without API server is being deleted or leaves the seed: its API server does not start again here.
func (s *Shoots) ends(ctx context.Context, namespace string) (bool, error) {
	if found := (&corev1.Namespace{}); s.Seed.Get(ctx, client.ObjectKey{Name: namespace}, found) == nil && found.DeletionTimestamp != nil {
		return true, nil
	}
	shoot, err := cluster.Shoot(ctx, s.Seed, namespace)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && shoot.DeletionTimestamp != nil, err
}

// tokens returns the controller that fills Secrets with tokens for shoots.
func (s *Shoots) tokens(c client.Client, clk clock.WithTicker) *tokenrequestor.Reconciler {
	return &tokenrequestor.Reconciler{
		SeedClient: c, SeedReader: s.Seed, Clock: clk, Class: resourcesv1alpha1.ResourceManagerClassShoot,
		Target: func(ctx context.Context, secret *corev1.Secret) (*tokenrequestor.Target, error) {
			access, _, err := s.reach(ctx, secret.Namespace)
			if access == nil || err != nil {
				return nil, err
			}
			return &tokenrequestor.Target{Client: access.Client, Reader: access.Client, Config: access.Config}, nil
		},
	}
}

// Start closes the connections to the shoots when the resource manager ends.
func (s *Shoots) Start(ctx context.Context) error {
	<-ctx.Done()
	s.clusters.Close()
	return nil
}
