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

// EncryptionKey is the name of the Secret with the key that encrypts the data of the API server, as in Gardener.
const EncryptionKey = constants.SecretNameETCDEncryptionKey

// Keys of that Secret's data, as in Gardener.
const (
	// KeyProvider is the encryption provider, as in a Shoot. If it is empty, the provider is aescbc.
	KeyProvider = "provider"
	// KeyName is the name of the encryption key, which prefixes all data that it has encrypted.
	KeyName = "key"
	// KeySecret is the encryption key, not encoded if KeyEncoding is "none".
	KeySecret     = "secret"
	KeyEncoding   = "encoding"
	encodingNone  = "none"
	encryptionKey = 32 // bytes, which all encryption providers accept
)

// labelEncrypts holds the Stage of a key. It is stored with the key: a stage that it does not record is repeated.
const labelEncrypts = "gardenlite.dev/encrypts"

// The stages of a key in their order.
const (
	// EncryptsNothing is the stage of a key that is only used for reading, and that some API servers may not know yet.
	EncryptsNothing Stage = ""
	// EncryptsNew is the stage of a key that every API server knows: new data is encrypted with it.
	EncryptsNew Stage = "new-data"
	// EncryptsAll is the stage of a key with which all data is encrypted. The previous key is not needed any more.
	EncryptsAll Stage = "all-data"
)

// Stage says for which data a key is used.
type Stage string

// Encryption is the key that encrypts data, and the previous one as long as it may have encrypted existing data.
type Encryption struct {
	Pair
	Stage Stage
}

// Provider returns the encryption provider of a key.
func Provider(key map[string][]byte) corev1beta1.EncryptionProviderType {
	if provider := string(key[KeyProvider]); provider != "" {
		return corev1beta1.EncryptionProviderType(provider)
	}
	return corev1beta1.EncryptionProviderTypeAESCBC
}

// Encryption ensures the key that encrypts data; a new key is for the given provider. It removes the old key when the
// rotation is being completed and all data is known to be encrypted with the new key. Until that is known, it ignores
// rotations, so that there is never a third key.
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

// SetEncryptionStage records that the key has reached a stage.
func (m *Manager) SetEncryptionStage(ctx context.Context, encryption *Encryption, stage Stage) error {
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
	// The name is the only way to tell with which key data was encrypted.
	name := fmt.Appendf(nil, "key%d-%s", now.Unix(), strings.ToLower(rand.Text()[:8]))
	return map[string][]byte{
		KeyProvider: []byte(provider), KeyName: name, KeySecret: key, KeyEncoding: []byte(encodingNone),
	}, nil
}
