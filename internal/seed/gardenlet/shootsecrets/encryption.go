package shootsecrets

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
)

// EncryptionKey is the name of the Secret with the key that encrypts what the API server keeps; Gardener's.
const EncryptionKey = constants.SecretNameETCDEncryptionKey

// Keys of that Secret's data; Gardener's.
const (
	// KeyProvider is the sort of encryption, as in a Shoot; aescbc if it is empty.
	KeyProvider = "provider"
	// KeyName stands before all that the key has encrypted.
	KeyName = "key"
	// KeySecret is the key, without an encoding as KeyEncoding says.
	KeySecret     = "secret"
	KeyEncoding   = "encoding"
	encodingNone  = "none"
	encryptionKey = 32 // bytes, with which each sort of encryption works
)

// labelEncrypts says how far a new key has come. It travels with the key: whatever it does not say is done again.
const labelEncrypts = "gardenlite.dev/encrypts"

// The stages of a key, in their order.
const (
	// EncryptsNothing is the stage of a key that can be read with, and that some API server may not know yet.
	EncryptsNothing Stage = ""
	// EncryptsNew is the stage of a key that every API server knows: what is written is encrypted with it.
	EncryptsNew Stage = "new-data"
	// EncryptsAll is the stage of a key with which everything is encrypted that is to be. The one before is of no use any more.
	EncryptsAll Stage = "all-data"
)

// Stage is how far a key has come.
type Stage string

// Encryption is the key that encrypts data, and the one before as long as there may be data that it has encrypted.
type Encryption struct {
	Pair
	Stage Stage
}

// Provider is the sort of encryption that a key is for.
func Provider(key map[string][]byte) corev1beta1.EncryptionProviderType {
	if provider := string(key[KeyProvider]); provider != "" {
		return corev1beta1.EncryptionProviderType(provider)
	}
	return corev1beta1.EncryptionProviderTypeAESCBC
}

// Encryption makes sure of the key that encrypts data; a new one is for that provider. The key before goes if the rotation is
// being completed and all data is known to be encrypted with the new one, and not before. Until then there is no third key: it
// is made the next time.
func (m *Manager) Encryption(ctx context.Context, rotation Rotation, provider corev1beta1.EncryptionProviderType) (Encryption, error) {
	known, err := m.read(ctx, EncryptionKey)
	if err != nil {
		return Encryption{}, err
	}
	old, err := m.read(ctx, EncryptionKey+Old)
	if err != nil {
		return Encryption{}, err
	}
	if known != nil && old != nil && Stage(known.Labels[labelEncrypts]) != EncryptsAll {
		rotation = Rotation{}
	}
	completing := rotation.Completing
	rotation.Completing = false
	pair, err := m.ensure(ctx, EncryptionKey, rotation,
		func(now time.Time) (map[string][]byte, error) { return newEncryptionKey(provider, now) })
	if err != nil {
		return Encryption{}, err
	}
	if known != nil && bytes.Equal(known.Data[KeySecret], pair.Current[KeySecret]) {
		encryption := Encryption{pair, Stage(known.Labels[labelEncrypts])}
		if completing && encryption.Stage == EncryptsAll {
			encryption.Old = nil
			return encryption, m.remove(ctx, EncryptionKey+Old)
		}
		return encryption, nil
	}
	return Encryption{Pair: pair}, nil
}

// Reach notes that the key has come to a stage.
func (m *Manager) Reach(ctx context.Context, encryption *Encryption, stage Stage) error {
	secret, err := m.read(ctx, EncryptionKey)
	if err != nil {
		return err
	}
	if secret == nil || !bytes.Equal(secret.Data[KeySecret], encryption.Current[KeySecret]) {
		return fmt.Errorf("the key in Secret %s/%s is another one than the API server was given: only the gardenlet may change it",
			m.Namespace, EncryptionKey)
	}
	labels := maps.Clone(secret.Labels)
	labels[labelEncrypts] = string(stage)
	if _, err := m.write(ctx, EncryptionKey, secret.Data, labels); err != nil {
		return err
	}
	encryption.Stage = stage
	return nil
}

func newEncryptionKey(provider corev1beta1.EncryptionProviderType, now time.Time) (map[string][]byte, error) {
	key := make([]byte, encryptionKey)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("making a key for encryption: %w", err)
	}
	// Whether data was encrypted with a key shows by the name only.
	name := fmt.Appendf(nil, "key%d-%s", now.Unix(), strings.ToLower(rand.Text()[:8]))
	return map[string][]byte{
		KeyProvider: []byte(provider), KeyName: name, KeySecret: key, KeyEncoding: []byte(encodingNone),
	}, nil
}
