package shootaccess

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/landscapeclock"
	"github.com/gardenlite/gardenlite/internal/seed/shootsecrets"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// User is the user of the gardenlet in a shoot, Group the group of all who reach it this way.
const (
	User  = "gardener.cloud:gardenlet"
	Group = "system:masters"
)

// Life is how long a client certificate is valid.
const Life = time.Hour

// ErrNoEndpoint says that the API server of the shoot has no address, because it is not created yet or is gone.
var ErrNoEndpoint = errors.New("it has no address yet")

// New returns a client configuration with which a user of Group reaches the API server of the shoot with the namespace in
// the seed. Its certificate is valid for Life: a long-running caller must renew it in time, or use a Cache.
func New(ctx context.Context, seed client.Reader, namespace, user string, clk clock.PassiveClock) (*rest.Config, error) {
	host, err := endpoint(ctx, seed, namespace)
	if err != nil {
		return nil, err
	}
	trusted, signer, err := authorities(ctx, seed, namespace)
	if err != nil {
		return nil, err
	}
	authority := shootsecrets.Pair{Current: signer}.Authority()
	cert, key, err := authority.Client(user, []string{Group}, landscapeclock.Real(clk), Life)
	if err != nil {
		return nil, fmt.Errorf("with the authority in Secret %s/%s: %w", namespace, shootsecrets.CAClient, err)
	}
	return &rest.Config{Host: "https://" + host, TLSClientConfig: rest.TLSClientConfig{CAData: trusted, CertData: cert, KeyData: key}}, nil
}

// authorities returns the CA certificates of the API server, and the authority of clients.
func authorities(ctx context.Context, seed client.Reader, namespace string) (trusted []byte, signer map[string][]byte, err error) {
	ca, old, clients := &corev1.Secret{}, &corev1.Secret{}, &corev1.Secret{}
	for name, secret := range map[string]*corev1.Secret{
		shootsecrets.CA: ca, shootsecrets.CA + shootsecrets.Old: old, shootsecrets.CAClient: clients,
	} {
		err := seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
		switch {
		case apierrors.IsNotFound(err) && secret == old:
		case apierrors.IsNotFound(err):
			return gardenersAuthorities(ctx, seed, namespace)
		case err != nil:
			return nil, nil, fmt.Errorf("reading Secret %s/%s, an authority of the shoot: %w", namespace, name, err)
		}
	}
	return slices.Concat(ca.Data[shootsecrets.KeyCertificate], old.Data[shootsecrets.KeyCertificate]), clients.Data, nil
}

// gardenersAuthorities returns the authorities of a control plane of Gardener's gardenlet.
func gardenersAuthorities(ctx context.Context, seed client.Reader, namespace string) (trusted []byte, signer map[string][]byte, err error) {
	bundles, err := shootsecrets.Named(ctx, seed, namespace, shootsecrets.CA+shootsecrets.Bundle)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the authority of the shoot: %w", err)
	}
	clients, err := shootsecrets.Named(ctx, seed, namespace, shootsecrets.CAClient)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the authority of the shoot's clients: %w", err)
	}
	return bundles[len(bundles)-1].Data[shootsecrets.KeyBundle], clients[len(clients)-1].Data, nil
}

func endpoint(ctx context.Context, seed client.Reader, namespace string) (string, error) {
	service := &corev1.Service{}
	if err := seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: spec.ServiceName}, service); apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reaching the API server of the shoot %s: %w", namespace, ErrNoEndpoint)
	} else if err != nil {
		return "", fmt.Errorf("reading Service %s/%s for the address of the shoot's API server: %w", namespace, spec.ServiceName, err)
	}
	if host := spec.Endpoint(service); host != "" {
		return host, nil
	}
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer { // Gardener's gardenlet has made it
		server := &appsv1.Deployment{}
		if err := seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: spec.APIServer}, server); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("reading Deployment %s/%s for the address of the shoot's API server: %w", namespace, spec.APIServer, err)
		}
		if host := server.Annotations[spec.AnnotationAddress]; host != "" {
			return host, nil
		}
	}
	return "", fmt.Errorf("reaching the API server of the shoot %s: %w", namespace, ErrNoEndpoint)
}
