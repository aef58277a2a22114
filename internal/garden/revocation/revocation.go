// Package revocation refuses client certificates of gardenlets that were issued before their Seed was deleted. To
// register a Seed of that name again, a gardenlet needs a new certificate, and thus a new bootstrap token. The
// package may import what authentication needs, and client-go.
package revocation

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/gardenlite/gardenlite/internal/certificates"
	"github.com/gardenlite/gardenlite/internal/retry"
)

const (
	// ConfigMapName is the ConfigMap in the namespace garden with the deletion times of Seeds, by their names.
	ConfigMapName = "deleted-seeds"

	// keepFor is how long a deletion time is kept. It is longer than the validity of any certificate.
	keepFor = 3 * 366 * 24 * time.Hour
	// writeTimeout limits how long the deletion of a Seed waits for the update of the ConfigMap.
	writeTimeout = 10 * time.Second
	writeRetry   = 100 * time.Millisecond
)

// DeletedSeeds contains the deletion times of Seeds. Its methods may be called concurrently.
type DeletedSeeds struct {
	clock clock.PassiveClock

	mu     sync.RWMutex
	loaded bool
	stored map[string]time.Time // in the ConfigMap
	own    map[string]time.Time // deleted through this API server, and not in stored yet
}

// New returns a DeletedSeeds that refuses all gardenlets until Watch has read the ConfigMap.
func New(clock clock.PassiveClock) *DeletedSeeds {
	return &DeletedSeeds{clock: clock, own: map[string]time.Time{}}
}

// Authenticator returns an authenticator that refuses the revoked certificates of gardenlets, and passes all other
// requests to next.
func (l *DeletedSeeds) Authenticator(next authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		if seed, issued := gardenletOf(r.TLS); seed != "" && l.revokes(seed, issued) {
			return nil, false, fmt.Errorf(
				"the certificate of the gardenlet of Seed %s was issued before the Seed was deleted: bootstrap the gardenlet again", seed)
		}
		return next.AuthenticateRequest(r)
	})
}

// Revocation returns a function that reports whether the certificate of a gardenlet's request has been revoked; nil for
// other clients.
func (l *DeletedSeeds) Revocation(r *http.Request) (revoked func() bool) {
	seed, issued := gardenletOf(r.TLS)
	if seed == "" {
		return nil
	}
	return func() bool { return l.revokes(seed, issued) }
}

// gardenletOf returns the seed in the gardenlet certificate of a connection, and when the certificate was issued. The
// seed is empty if the client is not a gardenlet.
func gardenletOf(state *tls.ConnectionState) (seed string, issued time.Time) {
	if state == nil || len(state.PeerCertificates) == 0 {
		return "", time.Time{}
	}
	certificate := state.PeerCertificates[0]
	seed, named := strings.CutPrefix(certificate.Subject.CommonName, constants.SeedUserNamePrefix)
	if !named || !slices.Contains(certificate.Subject.Organization, constants.SeedsGroup) {
		return "", time.Time{}
	}
	return seed, certificate.NotBefore.Add(certificates.Backdate)
}

func (l *DeletedSeeds) revokes(seed string, issued time.Time) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return !l.loaded || !issued.After(l.stored[seed]) || !issued.After(l.own[seed])
}

// RecordDeletion records that a Seed was deleted: immediately in this DeletedSeeds, and in the ConfigMap for other API
// servers and restarts.
func (l *DeletedSeeds) RecordDeletion(client kubernetes.Interface, seed string) {
	now := l.clock.Now().UTC().Truncate(time.Second) // certificates have whole seconds
	l.mu.Lock()
	l.own[seed] = now
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	backoff := wait.Backoff{Duration: writeRetry, Factor: 1, Steps: int(writeTimeout / writeRetry)}
	if err := retry.OnError(ctx, backoff, func(error) bool { return true },
		func() error { return l.write(ctx, client, seed, now) }); err != nil {
		klog.Background().Error(err,
			"Writing when a Seed was deleted failed: after a restart, old certificates of its gardenlet are valid again", "seed", seed)
	}
}

func (l *DeletedSeeds) write(ctx context.Context, client kubernetes.Interface, seed string, now time.Time) error {
	configMaps := client.CoreV1().ConfigMaps(constants.GardenNamespace)
	configMap, err := configMaps.Get(ctx, ConfigMapName, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if missing {
		configMap = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: ConfigMapName}}
	} else if err != nil {
		return err
	}
	if configMap.Data == nil {
		configMap.Data = map[string]string{}
	}
	for name, at := range parse(configMap) {
		if now.Sub(at) > keepFor {
			delete(configMap.Data, name)
		}
	}
	configMap.Data[seed] = now.Format(time.RFC3339)
	if !missing {
		_, err = configMaps.Update(ctx, configMap, metav1.UpdateOptions{})
		return err
	}
	_, err = configMaps.Create(ctx, configMap, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) { // a bare garden has no such namespace
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}}
		if _, err = client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err == nil {
			_, err = configMaps.Create(ctx, configMap, metav1.CreateOptions{})
		}
	}
	return err
}

// Watch reads the ConfigMap and watches it until the context ends. It calls loaded after the first read.
func (l *DeletedSeeds) Watch(ctx context.Context, client kubernetes.Interface, loaded func()) {
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", constants.GardenNamespace,
		fields.OneTermEqualSelector(metav1.ObjectNameField, ConfigMapName))
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source, ObjectType: &corev1.ConfigMap{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { l.store(parse(obj)) },
			UpdateFunc: func(_, obj any) { l.store(parse(obj)) },
			DeleteFunc: func(any) { l.store(nil) },
		},
	})
	var follow sync.WaitGroup
	follow.Go(func() { controller.RunWithContext(ctx) })
	select {
	case <-controller.HasSyncedChecker().Done():
		l.mu.Lock()
		l.loaded = true
		l.mu.Unlock()
		loaded()
	case <-ctx.Done():
	}
	follow.Wait()
}

func (l *DeletedSeeds) store(deleted map[string]time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stored = deleted
	for seed, at := range l.own {
		if !deleted[seed].Before(at) {
			delete(l.own, seed) // the ConfigMap contains it now
		}
	}
}

// parse returns the deletion times in the ConfigMap. It replaces an invalid time by the current one, to refuse too
// many certificates rather than too few.
func parse(obj any) map[string]time.Time {
	configMap, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return nil
	}
	deleted := make(map[string]time.Time, len(configMap.Data))
	for seed, text := range configMap.Data {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			at = time.Now()
		}
		deleted[seed] = at
	}
	return deleted
}
