package seedhost

import (
	"bytes"
	"context"
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gardenlite/gardenlite/internal/certificates"
	"github.com/gardenlite/gardenlite/internal/controlplane"
	"github.com/gardenlite/gardenlite/internal/seed"
	"github.com/gardenlite/gardenlite/internal/statedir"
)

const (
	// SeedLoginSuffix and SeedLoginKey define where gardenctl looks for the kubeconfig of a seed ("target seed" and
	// "target control-plane"): in the Secret SEED.login in the namespace garden.
	SeedLoginSuffix = ".login"
	SeedLoginKey    = "kubeconfig"
	// seedLoginUser is the user of that kubeconfig. Its rights are those of the ClusterRole cluster-admin, by a
	// ClusterRoleBinding in the seed.
	seedLoginUser = "gardenlite:seed-login"
	// seedLoginLife is how long its certificate is valid. It is renewed after half of that.
	seedLoginLife = 24 * time.Hour
	// seedLoginCheck is how often the Secret is checked, and seedLoginWait how often until it is written for the first time,
	// because the readiness of the landscape depends on it.
	seedLoginCheck = 10 * time.Second
	seedLoginWait  = 100 * time.Millisecond
)

// seedLogin maintains the Secret SEED.login of one seed.
type seedLogin struct {
	seed    string
	context string
	server  string
	caPEM   []byte
	issue   func(user string, groups []string, life time.Duration) (certPEM, keyPEM []byte, err error)
	clock   clock.WithTicker
	garden  client.Client
}

// startSeedLogin maintains the Secret of a seed until it is stopped. It uses the garden's administrator, because gardenlets
// may neither write nor read such a Secret. A gardenlet that runs alone has no such access, so its seed has no Secret.
func (h *Host) startSeedLogin(cluster *seed.Cluster) (stop func(), err error) {
	if h.garden.Admin == nil {
		return func() {}, nil
	}
	garden, err := newClient(h.garden.Admin)
	if err != nil {
		return nil, err
	}
	server := cluster.Server()
	login := &seedLogin{
		seed: cluster.Name(), context: h.cfg.Context + "-" + statedir.SeedPrefix + cluster.Name(), server: server.URL(),
		caPEM: server.PKI().CAPEM(), issue: server.PKI().Issue, clock: h.cfg.Clock, garden: garden,
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		login.run(ctx)
	}()
	return func() { cancel(); <-done }, nil
}

func (s *seedLogin) run(ctx context.Context) {
	next := seedLoginWait
	for {
		exists, err := s.reconcile(ctx)
		if err != nil && ctx.Err() == nil {
			klog.Background().Error(err, "Could not write the kubeconfig of a seed for gardenctl; trying again", "seed", s.seed)
		}
		if exists || err != nil {
			next = seedLoginCheck
		}
		select {
		case <-ctx.Done():
			return
		case <-s.clock.After(next):
		}
	}
}

// reconcile writes the Secret if the Seed exists, and the Secret is missing or its kubeconfig is not good any more. The Seed
// owns the Secret, so that it is deleted with the Seed. It returns whether the Secret exists.
func (s *seedLogin) reconcile(ctx context.Context) (exists bool, err error) {
	owner := &gardencorev1beta1.Seed{}
	err = s.garden.Get(ctx, client.ObjectKey{Name: s.seed}, owner)
	if apierrors.IsNotFound(err) || err == nil && owner.DeletionTimestamp != nil {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the Seed %s: %w", s.seed, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: s.seed + SeedLoginSuffix}}
	_, err = controllerutil.CreateOrUpdate(ctx, s.garden, secret, func() error {
		if metav1.IsControlledBy(secret, owner) && s.isGood(secret.Data[SeedLoginKey]) {
			return nil
		}
		kubeconfig, err := s.kubeconfig()
		secret.OwnerReferences = []metav1.OwnerReference{seedOwner(owner)}
		secret.Data = map[string][]byte{SeedLoginKey: kubeconfig}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("writing the Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return true, nil
}

// kubeconfig returns a kubeconfig with a new certificate.
func (s *seedLogin) kubeconfig() ([]byte, error) {
	certPEM, keyPEM, err := s.issue(seedLoginUser, nil, seedLoginLife)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for the seed %s: %w", s.seed, err)
	}
	return clientcmd.Write(*controlplane.Kubeconfig(s.context, s.server, s.caPEM, certPEM, keyPEM))
}

// isGood reports whether a kubeconfig is for this API server, and valid for at least half of its life from now on.
func (s *seedLogin) isGood(data []byte) bool {
	config, err := clientcmd.Load(data)
	if err != nil {
		return false
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return false
	}
	cluster, user := config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil || cluster.Server != s.server || !bytes.Equal(cluster.CertificateAuthorityData, s.caPEM) {
		return false
	}
	certs, err := certutil.ParseCertsPEM(user.ClientCertificateData)
	return err == nil && certs[0].Subject.CommonName == seedLoginUser &&
		certificates.ValidFor(certs[0], s.clock, seedLoginLife/2)
}
