package shootsecrets

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/landscapeclock"
)

// Names of the Secrets, as in Gardener.
const (
	CA                = "ca"
	CAClient          = "ca-client"
	CAFrontProxy      = "ca-front-proxy"
	ServiceAccountKey = "service-account-key"
	SSHKeypair        = "ssh-keypair"

	// Old is the suffix of the name of the Secret with the old value during a rotation.
	Old = ".old"
)

// Labels of the Secrets, as in Gardener.
const (
	labelName      = "name"
	labelManagedBy = "managed-by"
	labelPersist   = "persist"
	labelRotation  = "last-rotation-initiation-time"
	labelIssuedAt  = "issued-at-time"
	labelIdentity  = "manager-identity"
	// labelUseData lets Gardener's gardenlet take over the data of a Secret, whose own one has a hash in its name.
	labelUseData = "secrets-manager-use-data-for-name"
	managedBy    = "secrets-manager"
	persist      = "true"
)

// Manager manages the secrets of one shoot.
type Manager struct {
	// Client writes to the seed, Reader reads live from it.
	Client    client.Client
	Reader    client.Reader
	Clock     clock.PassiveClock
	Namespace string
	// SSHBits is the length of key pairs for SSH, 3072 by default.
	SSHBits int
}

// Rotation describes the rotation of a secret in a shoot's status.
type Rotation struct {
	// Initiated is when the last rotation was started, nil if there was none.
	Initiated *metav1.Time
	// Completing says that the old value is to be removed.
	Completing bool
}

// Pair is a secret with its old value during a rotation, which is nil if the old value is not accepted any more.
type Pair struct{ Current, Old map[string][]byte }

// Authorities ensures the CAs. They are returned by the names CA, CAClient and CAFrontProxy.
func (m *Manager) Authorities(ctx context.Context, rotation Rotation) (map[string]Pair, error) {
	var ca, client, frontProxy Pair
	group, ctx := errgroup.WithContext(ctx) // it takes a while to make their keys
	group.Go(func() (err error) { ca, err = m.authority(ctx, CA, "kubernetes", rotation); return err })
	group.Go(func() (err error) {
		client, err = m.authority(ctx, CAClient, "kubernetes-client", rotation)
		return err
	})
	group.Go(func() (err error) {
		frontProxy, err = m.authority(ctx, CAFrontProxy, "front-proxy", rotation)
		return err
	})
	err := group.Wait()
	return map[string]Pair{CA: ca, CAClient: client, CAFrontProxy: frontProxy}, err
}

func (m *Manager) authority(ctx context.Context, name, commonName string, rotation Rotation) (Pair, error) {
	if err := m.removeFutureAuthority(ctx, name); err != nil {
		return Pair{}, err
	}
	return m.ensure(ctx, name, rotation, func(now time.Time) (map[string][]byte, error) {
		if rotation.Initiated != nil { // two CAs with the same name could be confused
			commonName += "-" + unix(*rotation.Initiated)
		}
		return newAuthority(commonName, now)
	})
}

// removeFutureAuthority removes a CA that was made while the clock was ahead: no client or server accepts what it signs.
func (m *Manager) removeFutureAuthority(ctx context.Context, name string) error {
	secret, err := m.read(ctx, name)
	if err != nil || secret == nil {
		return err
	}
	certificate, err := parseCertificate(secret.Data[KeyCertificate])
	if err != nil || !landscapeclock.Real(m.Clock).Before(certificate.NotBefore) {
		return nil
	}
	return m.remove(ctx, name)
}

// SigningKey ensures the key that signs the tokens of service accounts.
func (m *Manager) SigningKey(ctx context.Context, rotation Rotation) (Pair, error) {
	return m.ensure(ctx, ServiceAccountKey, rotation, func(time.Time) (map[string][]byte, error) { return newSigningKey() })
}

// SSHKeypair ensures the key pair for machines. The old one is kept until the next rotation.
func (m *Manager) SSHKeypair(ctx context.Context, rotation Rotation) (Pair, error) {
	bits := cmp.Or(m.SSHBits, sshBits)
	return m.ensure(ctx, SSHKeypair, rotation, func(time.Time) (map[string][]byte, error) { return newSSHKeypair(bits) })
}

// RemoveSSHKeypair removes the key pair, for a shoot without SSH access to its machines.
func (m *Manager) RemoveSSHKeypair(ctx context.Context) error { return m.removeBoth(ctx, SSHKeypair) }

// removeBoth deletes a secret and its old value.
func (m *Manager) removeBoth(ctx context.Context, name string) error {
	if err := m.remove(ctx, name); err != nil {
		return err
	}
	return m.remove(ctx, name+Old)
}

// ensure creates a secret if it is missing, and renews it if it was not created for the last rotation.
func (m *Manager) ensure(ctx context.Context, name string, rotation Rotation,
	make func(now time.Time) (map[string][]byte, error)) (Pair, error) {
	current, err := m.current(ctx, name)
	if err != nil {
		return Pair{}, err
	}
	if current == nil || rotation.Initiated != nil && current.Labels[labelRotation] != unix(*rotation.Initiated) {
		if current, err = m.renew(ctx, name, current, rotation, make); err != nil {
			return Pair{}, err
		}
	}
	if rotation.Completing {
		return Pair{Current: current.Data}, m.remove(ctx, name+Old)
	}
	old, err := m.read(ctx, name+Old)
	if err != nil || old == nil {
		return Pair{Current: current.Data}, err
	}
	return Pair{current.Data, old.Data}, nil
}

// current returns the Secret with a name. If Gardener's gardenlet has been here, it takes over the value of that; the one before, too, if
// there is one.
func (m *Manager) current(ctx context.Context, name string) (*corev1.Secret, error) {
	current, err := m.read(ctx, name)
	if err != nil {
		return nil, err
	}
	if isOwn := current != nil && current.Labels[labelIdentity] == ""; isOwn {
		if current.Labels[labelUseData] != "" {
			return current, nil
		}
		return m.write(ctx, name, current.Data, current.Labels) // of an earlier version
	}
	all, err := Named(ctx, m.Reader, m.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	labelsOf := func(secret corev1.Secret) map[string]string {
		labels := map[string]string{labelIssuedAt: strconv.FormatInt(issuedAt(secret), 10)}
		if initiated := secret.Labels[labelRotation]; initiated != "" {
			labels[labelRotation] = initiated
		}
		return labels
	}
	newest := all[len(all)-1]
	labels := labelsOf(newest)
	if name == EncryptionKey {
		if labels[labelEncrypts] = string(EncryptsAll); len(all) > 1 {
			labels[labelEncrypts] = string(EncryptsNew)
		}
	}
	if len(all) > 1 {
		before := all[len(all)-2]
		if _, err := m.write(ctx, name+Old, before.Data, labelsOf(before)); err != nil {
			return nil, err
		}
	}
	return m.write(ctx, name, newest.Data, labels)
}

// HandOver deletes the Secrets whose values Gardener's gardenlet has taken over into its own ones.
func (m *Manager) HandOver(ctx context.Context) error {
	for _, name := range []string{CA, CAClient, CAFrontProxy, ServiceAccountKey, SSHKeypair, EncryptionKey} {
		own, err := m.read(ctx, name)
		if err != nil {
			return err
		}
		if own == nil || own.Labels[labelIdentity] != "" { // there is none, or it is that of Gardener's gardenlet
			continue
		}
		all, err := Named(ctx, m.Reader, m.Namespace, name)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		taken := slices.ContainsFunc(all, func(s corev1.Secret) bool {
			return s.Labels[labelIdentity] != "" && equality.Semantic.DeepEqual(s.Data, own.Data)
		})
		if !taken {
			continue
		}
		if err := m.removeBoth(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// renew creates a new value. The old value is written first, so that an interrupted renewal can be repeated.
func (m *Manager) renew(ctx context.Context, name string, current *corev1.Secret, rotation Rotation,
	make func(time.Time) (map[string][]byte, error)) (*corev1.Secret, error) {
	now := m.Clock.Now()
	data, err := make(landscapeclock.Real(m.Clock))
	if err != nil {
		return nil, err
	}
	if current != nil {
		if _, err := m.write(ctx, name+Old, current.Data, current.Labels); err != nil {
			return nil, err
		}
	}
	labels := map[string]string{labelIssuedAt: strconv.FormatInt(now.Unix(), 10)}
	if rotation.Initiated != nil {
		labels[labelRotation] = unix(*rotation.Initiated)
	}
	return m.write(ctx, name, data, labels)
}

// write creates or patches a Secret with the given content.
func (m *Manager) write(ctx context.Context, name string, data map[string][]byte, labels map[string]string) (*corev1.Secret, error) {
	secret, err := m.read(ctx, name)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	maps.Copy(all, labels)
	all[labelName], all[labelManagedBy], all[labelPersist] = name, managedBy, persist
	if !strings.HasSuffix(name, Old) {
		all[labelUseData] = name
	} else {
		delete(all, labelUseData)
	}
	if secret == nil {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: name, Labels: all},
			Type: corev1.SecretTypeOpaque, Data: data}
		err = m.Client.Create(ctx, secret)
	} else {
		before := secret.DeepCopy()
		secret.Labels, secret.Data = all, data
		if equality.Semantic.DeepEqual(before, secret) {
			return secret, nil
		}
		if ptr.Deref(secret.Immutable, false) { // Gardener's gardenlet has been here
			if err := m.remove(ctx, name); err != nil {
				return nil, err
			}
			return m.write(ctx, name, data, labels)
		}
		err = m.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	if err != nil {
		return nil, fmt.Errorf("writing Secret %s/%s: %w", m.Namespace, name, err)
	}
	return secret, nil
}

// read returns a Secret, nil if it does not exist.
func (m *Manager) read(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := m.Reader.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", m.Namespace, name, err)
	}
	return secret, nil
}

func (m *Manager) remove(ctx context.Context, name string) error {
	secret, err := m.read(ctx, name)
	if secret == nil || err != nil {
		return err
	}
	if err := m.Client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Secret %s/%s: %w", m.Namespace, name, err)
	}
	return nil
}

// unix formats a time for labels.
func unix(t metav1.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// Bundle returns the current and the old value of a key, joined: both are accepted during a rotation.
func (p Pair) Bundle(key string) []byte {
	if p.Old == nil {
		return p.Current[key]
	}
	return bytes.Join([][]byte{bytes.TrimSpace(p.Current[key]), bytes.TrimSpace(p.Old[key]), nil}, []byte("\n"))
}

// Authority returns the current CA of the pair.
func (p Pair) Authority() Authority {
	return Authority{Certificate: p.Current[KeyCertificate], Key: p.Current[KeyPrivateKey]}
}

// Serving returns the CA that signs serving certificates: the old one as long as some clients may not know the new one.
func (p Pair) Serving() Authority {
	if p.Old == nil {
		return p.Authority()
	}
	return Authority{Certificate: p.Old[KeyCertificate], Key: p.Old[KeyPrivateKey]}
}
