package bootstrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The Secrets in the seed, as Gardener's chart names them.
var (
	KubeconfigSecret          = client.ObjectKey{Namespace: constants.GardenNamespace, Name: "gardenlet-kubeconfig"}
	BootstrapKubeconfigSecret = client.ObjectKey{Namespace: constants.GardenNamespace, Name: "gardenlet-kubeconfig-bootstrap"}
)

// EventRotationFailed is the reason of the event on the Seed after a failed rotation of the gardenlet's certificate, as in
// Gardener.
const EventRotationFailed = "GardenletCertificateRotationFailed"

// Config configures the identity of a seed's gardenlet. SeedName and SeedClient are required.
type Config struct {
	SeedName string
	// SeedClient reads and writes the Secrets of the seed. It must not read from a cache.
	SeedClient client.Client
	// Bootstrap is a kubeconfig with a bootstrap token, a ServiceAccount's token or a client certificate. If it is empty,
	// the one in the seed's Secret garden/gardenlet-kubeconfig-bootstrap is used, if it exists.
	Bootstrap []byte
	// NewBootstrap, if set, creates a bootstrap kubeconfig when one is needed and there is none.
	NewBootstrap func(context.Context) ([]byte, error)
	// Garden, if not nil, has the current address and CA of the garden, which override the stored ones. Credentials in it
	// are ignored.
	Garden *rest.Config
	// Clock decides whether a certificate is valid and when it is rotated. It defaults to the real clock.
	Clock clock.Clock
	Log   logr.Logger
	// Validity is the requested lifetime of a certificate (spec.expirationSeconds). If it is nil, the signer decides alone.
	Validity *time.Duration
	// RotateFrom and RotateTo are the fractions of its lifetime between which a certificate is rotated, at a random time.
	// They default to 0.8 and 0.9.
	RotateFrom, RotateTo float64
	// Rand returns random numbers in [0,1). It defaults to that of the standard library.
	Rand func() float64
	// Durations has Gardener's values where a field is 0.
	Durations Durations
}

// Durations are intervals and timeouts, with their defaults. They are in real time, except for RenewCheck, which uses
// Config.Clock.
type Durations struct {
	// PollFrom and PollTo are the first and the longest interval between two checks of a request: 50 ms and 2 s.
	PollFrom, PollTo time.Duration
	// OwnPoll replaces PollFrom when the gardenlet requests with its own certificate: until the garden has seen the
	// request in its watch, the SeedAuthorizer denies reading it. 2 s.
	OwnPoll time.Duration
	// Approval is the timeout for getting a certificate. 15 min.
	Approval time.Duration
	// Refusal is for how long a 401 or 403 of the garden is retried: the garden may not have seen the token or its role
	// yet. 10 s.
	Refusal time.Duration
	// RetryFrom and RetryTo are the first and the longest delay of the exponential backoff in Run. 1 s and 1 min.
	RetryFrom, RetryTo time.Duration
	// RenewCheck is the interval between two checks whether a user has requested a new certificate. 10 s.
	RenewCheck time.Duration
}

func (d *Durations) complete() {
	for at, value := range map[*time.Duration]time.Duration{
		&d.PollFrom: 50 * time.Millisecond, &d.PollTo: 2 * time.Second, &d.OwnPoll: 2 * time.Second,
		&d.Approval: 15 * time.Minute, &d.Refusal: 10 * time.Second,
		&d.RetryFrom: time.Second, &d.RetryTo: time.Minute, &d.RenewCheck: 10 * time.Second,
	} {
		if *at == 0 {
			*at = value
		}
	}
}

func (c *Config) complete() error {
	if problems := validation.IsDNS1123Subdomain(c.SeedName); len(problems) > 0 {
		return fmt.Errorf("%q cannot be the name of a seed: %s", c.SeedName, problems[0])
	}
	if c.SeedClient == nil {
		return errors.New("a gardenlet needs a client for its seed")
	}
	c.Clock = cmp.Or[clock.Clock](c.Clock, clock.RealClock{})
	if c.Log.IsZero() {
		c.Log = logr.Discard()
	}
	c.Log = c.Log.WithName("identity").WithValues("seed", c.SeedName)
	if c.RotateFrom == 0 && c.RotateTo == 0 {
		c.RotateFrom, c.RotateTo = 0.8, 0.9
	}
	if c.RotateFrom <= 0 || c.RotateTo < c.RotateFrom || c.RotateTo >= 1 {
		return fmt.Errorf("a certificate cannot be rotated between %g and %g of its life: both must be between 0 and 1", c.RotateFrom, c.RotateTo)
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	c.Durations.complete()
	return nil
}
