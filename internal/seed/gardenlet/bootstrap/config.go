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

// EventRotationFailed is the reason of the event on the Seed that says that its gardenlet's certificate could not be
// rotated; Gardener's.
const EventRotationFailed = "GardenletCertificateRotationFailed"

// Config says whose identity is wanted. SeedName and SeedClient are required.
type Config struct {
	SeedName string
	// SeedClient reads and writes the Secrets of the seed. It must not read from a cache.
	SeedClient client.Client
	// Bootstrap is a kubeconfig with a bootstrap token, or with a ServiceAccount's token or a client certificate. Where it
	// is empty, the one in the seed's Secret garden/gardenlet-kubeconfig-bootstrap is used, if there is one.
	Bootstrap []byte
	// NewBootstrap, if set, makes such a kubeconfig when one is needed and there is none.
	NewBootstrap func(context.Context) ([]byte, error)
	// Garden, if not nil, is where the garden is now: its address and authority count more than those that are stored.
	// Credentials in it are ignored.
	Garden *rest.Config
	// Clock tells whether a certificate is valid, and when to rotate it. The real one by default.
	Clock clock.Clock
	Log   logr.Logger
	// Validity is what life is asked for (spec.expirationSeconds); the signer decides, alone if it is nil.
	Validity *time.Duration
	// RotateFrom and RotateTo are after what part of its life a certificate is rotated, at random between the two; 0.8 and
	// 0.9 by default.
	RotateFrom, RotateTo float64
	// Rand returns numbers in [0,1); the standard library's by default.
	Rand func() float64
	// Durations are as Gardener has them where they are 0.
	Durations Durations
}

// Durations are in real time but RenewCheck, which is by the Config's clock.
type Durations struct {
	// PollFrom and PollTo are how often it is looked whether a request is decided on: more and more seldom. 50 ms and 2 s.
	PollFrom, PollTo time.Duration
	// OwnPoll is how long that waits at first when the gardenlet asks as itself: before the garden has seen the request in
	// its watch, the SeedAuthorizer refuses to let it be read. 2 s.
	OwnPoll time.Duration
	// Approval is how long is waited for a certificate. 15 min.
	Approval time.Duration
	// Refusal is how long a refusal by the garden (401, 403) may be that of a garden that has not seen the token or its
	// role yet. 10 s.
	Refusal time.Duration
	// RetryFrom and RetryTo are how long is waited after a failure of Run's. 1 s and 1 min.
	RetryFrom, RetryTo time.Duration
	// RenewCheck is the interval between checks whether a user has requested a new certificate. 10 s.
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
