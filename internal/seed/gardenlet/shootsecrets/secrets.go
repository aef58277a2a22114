package shootsecrets

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of the Secrets; Gardener's.
const (
	CA                = "ca"
	CAClient          = "ca-client"
	CAFrontProxy      = "ca-front-proxy"
	ServiceAccountKey = "service-account-key"
	SSHKeypair        = "ssh-keypair"

	// Old ends the name of what a secret was before its rotation.
	Old = ".old"
)

// Labels of the Secrets; Gardener's.
const (
	labelName      = "name"
	labelManagedBy = "managed-by"
	labelPersist   = "persist"
	labelRotation  = "last-rotation-initiation-time"
	labelIssuedAt  = "issued-at-time"
	managedBy      = "secrets-manager"
	persist        = "true"
)

// Manager keeps the secrets of one shoot.
type Manager struct {
	// Client writes, and reads live, in the seed.
	Client    client.Client
	Reader    client.Reader
	Clock     clock.PassiveClock
	Namespace string
	// SSHBits is the length of key pairs for SSH, 3072 by default.
	SSHBits int
}

// Rotation is what a shoot's status says about the rotation of a secret.
type Rotation struct {
	// Initiated is when it was last begun, nil if never.
	Initiated *metav1.Time
	// Completing says that what was before goes.
	Completing bool
}

// Pair is a secret, and what it was before its rotation: nil if the old one is not accepted any more.
type Pair struct{ Current, Old map[string][]byte }

// Authorities makes sure of the authorities, by the names CA, CAClient and CAFrontProxy.
func (m *Manager) Authorities(ctx context.Context, rotation Rotation) (map[string]Pair, error) {
	all := map[string]Pair{}
	for name, commonName := range map[string]string{CA: "kubernetes", CAClient: "kubernetes-client", CAFrontProxy: "front-proxy"} {
		pair, err := m.ensure(ctx, name, rotation, func(now time.Time) (map[string][]byte, error) {
			if rotation.Initiated != nil { // two authorities with one name could be taken for one
				commonName += "-" + unix(*rotation.Initiated)
			}
			return newAuthority(commonName, now)
		})
		if err != nil {
			return nil, err
		}
		all[name] = pair
	}
	return all, nil
}

// SigningKey makes sure of the key that signs the tokens of service accounts.
func (m *Manager) SigningKey(ctx context.Context, rotation Rotation) (Pair, error) {
	return m.ensure(ctx, ServiceAccountKey, rotation, func(time.Time) (map[string][]byte, error) { return newSigningKey() })
}

// SSHKeypair makes sure of the key pair for machines. The one before is good until the next rotation.
func (m *Manager) SSHKeypair(ctx context.Context, rotation Rotation) (Pair, error) {
	bits := m.SSHBits
	if bits == 0 {
		bits = sshBits
	}
	return m.ensure(ctx, SSHKeypair, rotation, func(time.Time) (map[string][]byte, error) { return newSSHKeypair(bits) })
}

// RemoveSSHKeypair is for a shoot without SSH access to its machines.
func (m *Manager) RemoveSSHKeypair(ctx context.Context) error { return m.removeBoth(ctx, SSHKeypair) }

// removeBoth removes a secret, and the one before.
func (m *Manager) removeBoth(ctx context.Context, name string) error {
	if err := m.remove(ctx, name); err != nil {
		return err
	}
	return m.remove(ctx, name+Old)
}

// ensure has a secret be there, made for the last rotation that was begun.
func (m *Manager) ensure(ctx context.Context, name string, rotation Rotation,
	make func(now time.Time) (map[string][]byte, error)) (Pair, error) {
	current, err := m.read(ctx, name)
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

// renew makes a secret new. The old value is written first, so that it can be repeated after an interruption.
func (m *Manager) renew(ctx context.Context, name string, current *corev1.Secret, rotation Rotation,
	make func(time.Time) (map[string][]byte, error)) (*corev1.Secret, error) {
	now := m.Clock.Now()
	data, err := make(now)
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

// write has a Secret have these contents.
func (m *Manager) write(ctx context.Context, name string, data map[string][]byte, labels map[string]string) (*corev1.Secret, error) {
	secret, err := m.read(ctx, name)
	if err != nil {
		return nil, err
	}
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelName], labels[labelManagedBy], labels[labelPersist] = name, managedBy, persist
	if secret == nil {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: name, Labels: labels},
			Type: corev1.SecretTypeOpaque, Data: data}
		err = m.Client.Create(ctx, secret)
	} else {
		before := secret.DeepCopy()
		secret.Labels, secret.Data = labels, data
		if equality.Semantic.DeepEqual(before, secret) {
			return secret, nil
		}
		err = m.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	if err != nil {
		return nil, fmt.Errorf("writing Secret %s/%s: %w", m.Namespace, name, err)
	}
	return secret, nil
}

// read reads a Secret, nil if there is none.
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

// unix is a time as labels have it.
func unix(t metav1.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// Bundle are the values of a key in a pair, one after the other: what is accepted while it is rotated.
func (p Pair) Bundle(key string) []byte {
	if p.Old == nil {
		return p.Current[key]
	}
	return bytes.Join([][]byte{bytes.TrimSpace(p.Current[key]), bytes.TrimSpace(p.Old[key]), nil}, []byte("\n"))
}

// Authority is the pair's current authority.
func (p Pair) Authority() Authority {
	return Authority{Certificate: p.Current[KeyCertificate], Key: p.Current[KeyPrivateKey]}
}

// Serving is the authority that signs what servers show: the one before as long as there may be clients that know of no other.
func (p Pair) Serving() Authority {
	if p.Old == nil {
		return p.Authority()
	}
	return Authority{Certificate: p.Old[KeyCertificate], Key: p.Old[KeyPrivateKey]}
}
