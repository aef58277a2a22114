package shootsecrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// persisted is the format of a Secret in a ShootState, as in Gardener.
type persisted struct {
	Data      map[string][]byte `json:"data"`
	Immutable *bool             `json:"immutable,omitempty"`
	Type      corev1.SecretType `json:"type,omitempty"`
}

// Persist returns the shoot's secrets for spec.gardener of a ShootState, sorted by name. The result is empty if the
// namespace has no secrets (any more).
func (m *Manager) Persist(ctx context.Context) ([]corev1beta1.GardenerResourceData, error) {
	list := &corev1.SecretList{}
	if err := m.Reader.List(ctx, list, client.InNamespace(m.Namespace), client.MatchingLabels{labelPersist: persist}); err != nil {
		return nil, fmt.Errorf("listing the Secrets of namespace %s that are to be kept: %w", m.Namespace, err)
	}
	var all []corev1beta1.GardenerResourceData
	for _, secret := range list.Items {
		data, err := json.Marshal(persisted{Data: secret.Data, Immutable: secret.Immutable, Type: secret.Type})
		if err != nil {
			return nil, fmt.Errorf("writing Secret %s/%s for the ShootState: %w", m.Namespace, secret.Name, err)
		}
		all = append(all, corev1beta1.GardenerResourceData{
			Name: secret.Name, Type: constants.DataTypeSecret, Labels: secret.Labels, Data: runtime.RawExtension{Raw: data},
		})
	}
	slices.SortFunc(all, func(a, b corev1beta1.GardenerResourceData) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Restore creates the Secrets of a ShootState that do not exist yet.
func (m *Manager) Restore(ctx context.Context, state []corev1beta1.GardenerResourceData) error {
	found := false
	for _, entry := range state {
		if entry.Type != constants.DataTypeSecret {
			continue
		}
		found = true
		content := persisted{}
		if err := json.Unmarshal(entry.Data.Raw, &content); err != nil || content.Data == nil {
			return fmt.Errorf("the ShootState's entry %s is no Secret's", entry.Name)
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: entry.Name, Labels: entry.Labels},
			Type:       content.Type, Data: content.Data, Immutable: content.Immutable,
		}
		if err := client.IgnoreAlreadyExists(m.Client.Create(ctx, secret)); err != nil {
			return fmt.Errorf("restoring Secret %s/%s from the ShootState: %w", m.Namespace, entry.Name, err)
		}
	}
	if !found {
		return errors.New("the ShootState has no secrets: without its authorities the control plane would not be that of the Shoot any more")
	}
	return nil
}

// Merge replaces the secrets in the data of a ShootState, and keeps all other data.
func Merge(state, secrets []corev1beta1.GardenerResourceData) []corev1beta1.GardenerResourceData {
	if len(secrets) == 0 {
		return state
	}
	rest := slices.DeleteFunc(slices.Clone(state), func(d corev1beta1.GardenerResourceData) bool { return d.Type == constants.DataTypeSecret })
	return slices.Concat(secrets, rest)
}
