package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
)

// conflicts is the number of conflicts with another gardenlet of the seed after which Obtain fails.
const conflicts = 5

// Identity is the identity of a gardenlet in the garden. It is safe for concurrent use.
type Identity struct {
	cfg       Config
	transport *transport
	// bootstrapped triggers the clean-up after bootstrapping.
	bootstrapped chan struct{}

	mu        sync.Mutex
	current   *credential
	rotateAt  time.Time
	observers []func(expiration time.Time, err error)
}

// Obtain returns the identity that is stored in the seed, or gets a new one by TLS bootstrapping. It waits for the garden
// until Durations.Approval has passed or the context ends. Run keeps the certificate valid; Close ends the connections.
func Obtain(ctx context.Context, cfg Config) (*Identity, error) {
	if err := cfg.complete(); err != nil {
		return nil, fmt.Errorf("getting the gardenlet's identity: %w", err)
	}
	if cfg.Garden != nil {
		cfg.Garden = rest.CopyConfig(cfg.Garden)
		if err := rest.LoadTLSFiles(cfg.Garden); err != nil {
			return nil, fmt.Errorf("reading the garden's authority: %w", err)
		}
	}
	i := &Identity{cfg: cfg, transport: newTransport(), bootstrapped: make(chan struct{}, 1)}
	for attempt := 1; ; attempt++ {
		err := i.obtain(ctx, true)
		if err == nil {
			return i, nil
		}
		if !isConflict(err) || attempt == conflicts {
			// Another gardenlet of the seed may have been faster, and may have deleted the token.
			if ctx.Err() == nil && i.obtain(ctx, false) == nil {
				return i, nil
			}
			return nil, err
		}
	}
}

// obtain uses the stored credential, or bootstraps a new one if mayBootstrap is set.
func (i *Identity) obtain(ctx context.Context, mayBootstrap bool) error {
	s, err := readStore(ctx, i.cfg.SeedClient)
	if err != nil {
		return err
	}
	current, err := i.stored(s)
	if err == nil {
		return i.use(current)
	}
	if !mayBootstrap {
		return err
	}
	return i.bootstrap(ctx, s, err)
}

// BootstrapAgain replaces the certificate because the garden refuses it: it is revoked when the Seed is deleted. If the
// gardenlet cannot be bootstrapped, the stored one stays.
func (i *Identity) BootstrapAgain(ctx context.Context, refused error) error {
	s, err := readStore(ctx, i.cfg.SeedClient)
	if err != nil {
		return err
	}
	return i.bootstrap(ctx, s, refused)
}

func isConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// stored returns the credential that is stored in the seed, or an error if it is not valid.
func (i *Identity) stored(s *store) (*credential, error) {
	current, err := s.credential(i.cfg.SeedName, i.cfg.Clock)
	if err != nil {
		return nil, fmt.Errorf("in Secret %s of the seed: %w", KubeconfigSecret, err)
	}
	if !current.validAt(i.cfg.Clock.Now()) {
		return nil, fmt.Errorf("in Secret %s of the seed, the certificate is valid from %s until %s only", KubeconfigSecret,
			current.leaf.NotBefore.Format(time.RFC3339), current.leaf.NotAfter.Format(time.RFC3339))
	}
	current.garden = i.endpoint(current.garden)
	return current, nil
}

// endpoint returns the address and CA of the garden: those of Config.Garden, or else those in the given configuration.
func (i *Identity) endpoint(config *rest.Config) *rest.Config {
	if i.cfg.Garden != nil {
		config = i.cfg.Garden
	}
	return endpointOf(config)
}

// bootstrap gets a credential with the bootstrap kubeconfig, stores it and uses it. The parameter why is the reason for it.
func (i *Identity) bootstrap(ctx context.Context, s *store, why error) error {
	advice := fmt.Sprintf("make a new one with `gardenlite token create --seed %s`", i.cfg.SeedName)
	kubeconfig := i.cfg.Bootstrap
	if len(kubeconfig) == 0 {
		var err error
		if kubeconfig, err = readBootstrap(ctx, i.cfg.SeedClient); err != nil {
			return err
		}
	}
	if len(kubeconfig) == 0 && i.cfg.NewBootstrap != nil {
		var err error
		if kubeconfig, err = i.cfg.NewBootstrap(ctx); err != nil {
			return fmt.Errorf("making a bootstrap kubeconfig for the gardenlet of seed %q: %w", i.cfg.SeedName, err)
		}
	}
	if len(kubeconfig) == 0 {
		return fmt.Errorf("the gardenlet of seed %q has no certificate that is valid (%w), and no bootstrap kubeconfig: %s",
			i.cfg.SeedName, why, advice)
	}
	config, err := parseBootstrap(kubeconfig)
	if err != nil {
		return fmt.Errorf("the bootstrap kubeconfig of seed %q: %w: %s", i.cfg.SeedName, err, advice)
	}
	i.cfg.Log.Info("Bootstrapping", "reason", why.Error(), "garden", i.endpoint(config).Host)
	at := i.endpoint(config)
	config.Host, config.TLSClientConfig.CAData, config.CAFile, config.Insecure, config.ServerName = at.Host, at.CAData, "",
		at.Insecure, at.ServerName
	client, closeClient, err := clientOf(config)
	if err != nil {
		return fmt.Errorf("making a client of the bootstrap kubeconfig: %w", err)
	}
	defer closeClient()
	current, err := i.requestCertificate(ctx, s, client, at, i.cfg.Durations.PollFrom)
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return fmt.Errorf("the garden refuses the bootstrap kubeconfig of seed %q, its token may have expired: %s: %w",
			i.cfg.SeedName, advice, err)
	}
	if err != nil {
		return fmt.Errorf("bootstrapping the gardenlet of seed %q: %w", i.cfg.SeedName, err)
	}
	if err := s.setCredential(ctx, current, userOf(config)); err != nil {
		return err
	}
	select {
	case i.bootstrapped <- struct{}{}:
	default:
	}
	return i.useNew(current)
}

// requestCertificate gets a certificate for the pending key, or for a new key.
func (i *Identity) requestCertificate(ctx context.Context, s *store, client kubernetes.Interface, garden *rest.Config,
	firstPoll time.Duration) (*credential, error) {
	for {
		keyPEM := s.pending()
		resumed := keyPEM != nil
		if !resumed {
			var err error
			if keyPEM, err = keyutil.MakeEllipticPrivateKeyPEM(); err != nil {
				return nil, fmt.Errorf("making a key: %w", err)
			}
			if err := s.setPending(ctx, keyPEM); err != nil {
				return nil, err
			}
		}
		current, err := i.certify(ctx, keyPEM, client, garden, firstPoll)
		if !errors.Is(err, errRejected) {
			return current, err
		}
		if errForget := s.setPending(ctx, nil); errForget != nil || !resumed {
			return nil, errors.Join(err, errForget)
		}
		i.cfg.Log.Info("A request of before came to nothing, making another one", "reason", err.Error())
	}
}

func (i *Identity) certify(ctx context.Context, keyPEM []byte, client kubernetes.Interface, garden *rest.Config,
	firstPoll time.Duration) (*credential, error) {
	csr, err := i.cfg.request(keyPEM)
	if err != nil {
		return nil, err
	}
	requester := &requester{client: client.CertificatesV1().CertificateSigningRequests(), csr: csr, durations: i.cfg.Durations,
		firstPoll: firstPoll, log: i.cfg.Log}
	certPEM, err := requester.certificate(ctx)
	if err != nil {
		return nil, err
	}
	current, err := newCredential(garden, certPEM, keyPEM, i.cfg.SeedName, i.cfg.Clock)
	if err != nil {
		return nil, fmt.Errorf("CertificateSigningRequest %s: %w: %w", csr.Name, err, errRejected)
	}
	if !i.cfg.Clock.Now().Before(current.leaf.NotAfter) {
		return nil, fmt.Errorf("CertificateSigningRequest %s: the certificate has expired at %s: %w", csr.Name,
			current.leaf.NotAfter.Format(time.RFC3339), errRejected)
	}
	return current, nil
}

// use makes all new requests use the credential, and sets the time of its rotation.
func (i *Identity) use(c *credential) error {
	if err := i.transport.rotate(c.config()); err != nil {
		return fmt.Errorf("making connections with the gardenlet's certificate: %w", err)
	}
	life := c.leaf.NotAfter.Sub(c.leaf.NotBefore)
	part := i.cfg.RotateFrom + (i.cfg.RotateTo-i.cfg.RotateFrom)*i.cfg.Rand()
	at := c.leaf.NotBefore.Add(time.Duration(float64(life) * part))
	i.mu.Lock()
	defer i.mu.Unlock()
	i.current, i.rotateAt = c, at
	i.cfg.Log.Info("The gardenlet has a certificate", "expires", c.leaf.NotAfter, "rotation", at)
	return nil
}

func (i *Identity) state() (*credential, time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.current, i.rotateAt
}

// RESTConfig returns a configuration for clients of the garden. They use the current certificate for every request;
// watches and requests in progress during a rotation keep the certificate that they started with. The caller may set rate
// limits and names in it.
func (i *Identity) RESTConfig() *rest.Config {
	current, _ := i.state()
	return &rest.Config{Host: current.garden.Host, APIPath: current.garden.APIPath, Transport: i.transport}
}

// Garden returns the address and CA of the garden, without credentials.
func (i *Identity) Garden() *rest.Config {
	current, _ := i.state()
	return endpointOf(current.garden)
}

// Kubeconfig returns a kubeconfig with the current certificate and its key, for clients that cannot use RESTConfig.
func (i *Identity) Kubeconfig() ([]byte, error) {
	current, _ := i.state()
	return current.kubeconfig()
}

// Expiration returns when the current certificate expires: the Seed's status.clientCertificateExpirationTimestamp.
func (i *Identity) Expiration() time.Time {
	current, _ := i.state()
	return current.leaf.NotAfter
}

// Observe registers a function that Run calls after each successful or failed rotation, with the expiration of the current
// certificate. Run waits until the function returns.
func (i *Identity) Observe(observer func(expiration time.Time, err error)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.observers = append(i.observers, observer)
}

// Close ends all connections. Requests in progress and later ones fail.
func (i *Identity) Close() { i.transport.close() }
