package shoot

import (
	"context"
	"fmt"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/extensionops"
	"github.com/gardenlite/gardenlite/internal/seed/shootsecrets"
)

// persistSecrets writes the Shoot's current secrets into the ShootState.
func (b *botanist) persistSecrets(ctx context.Context) error {
	return b.writeState(ctx, func(*corev1beta1.ShootStateSpec) {})
}

// persistState writes everything that another seed needs into the ShootState: the secrets, and the states of extension
// resources. It keeps the states of resources that are already gone from the seed.
func (b *botanist) persistState(ctx context.Context) error {
	var extensions []corev1beta1.ExtensionResourceState
	err := b.each(ctx, func(_ context.Context, kind string, obj extensionsv1alpha1.Object) error {
		if state := extensionops.StateOf(kind, obj); state != nil {
			extensions = append(extensions, *state)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.writeState(ctx, func(spec *corev1beta1.ShootStateSpec) {
		for _, e := range extensions {
			i := slices.IndexFunc(spec.Extensions, func(has corev1beta1.ExtensionResourceState) bool {
				return has.Kind == e.Kind && ptr.Equal(has.Name, e.Name) && ptr.Equal(has.Purpose, e.Purpose)
			})
			if i < 0 {
				spec.Extensions = append(spec.Extensions, e)
			} else {
				spec.Extensions[i] = e
			}
		}
	})
}

// cleanState removes from the ShootState what was only for the restoration.
func (b *botanist) cleanState(ctx context.Context) error {
	return b.writeState(ctx, func(spec *corev1beta1.ShootStateSpec) { *spec = corev1beta1.ShootStateSpec{} })
}

// writeState writes what mutate changes in the ShootState, and the Shoot's current secrets.
func (b *botanist) writeState(ctx context.Context, mutate func(*corev1beta1.ShootStateSpec)) error {
	secrets, err := b.secrets().Persist(ctx)
	if err != nil {
		return err
	}
	state, err := b.readState(ctx)
	if err != nil {
		return err
	}
	// After the secrets: a namespace that is not being deleted now had all of them then.
	namespace := &corev1.Namespace{}
	err = b.SeedReader.Get(ctx, client.ObjectKey{Name: b.namespace()}, namespace)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading namespace %s: %w", b.namespace(), err)
	}
	before := state.DeepCopy()
	mutate(&state.Spec)
	if err == nil && namespace.DeletionTimestamp == nil {
		state.Spec.Gardener = shootsecrets.Merge(state.Spec.Gardener, secrets)
	} else { // they go one by one: those that were written before are all
		state.Spec.Gardener = before.Spec.Gardener
	}
	if state.ResourceVersion != "" && equality.Semantic.DeepEqual(before.Spec, state.Spec) {
		return nil
	}
	return extensionops.WriteShootState(ctx, b.GardenClient, state, before, b.Clock.Now())
}

// readState reads the ShootState. It has no resource version if it does not exist.
func (b *botanist) readState(ctx context.Context) (*corev1beta1.ShootState, error) {
	key := client.ObjectKeyFromObject(b.shoot)
	state := &corev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := b.GardenReader.Get(ctx, key, state); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading ShootState %s: %w", key, err)
	}
	return state, nil
}

// initializeSecrets ensures the Shoot's CAs and keys, and the records of rollouts of its worker pools. In a
// restoration, it first restores the existing ones from the ShootState.
func (b *botanist) initializeSecrets(ctx context.Context) error {
	var err error
	if b.restores() {
		if b.state, err = b.readState(ctx); err != nil {
			return err
		}
		if b.state.ResourceVersion == "" {
			return fmt.Errorf("there is no ShootState %s: the Shoot cannot be restored without it", client.ObjectKeyFromObject(b.shoot))
		}
		if err := b.secrets().Restore(ctx, b.state.Spec.Gardener); err != nil {
			return err
		}
	}
	if b.authorities, err = b.secrets().Authorities(ctx, authorityRotation(&b.shoot.Status)); err != nil {
		return err
	}
	if b.signingKey, err = b.secrets().SigningKey(ctx, signingKeyRotation(&b.shoot.Status)); err != nil {
		return err
	}
	if b.encryption, err = b.secrets().Encryption(ctx, encryptionKeyRotation(&b.shoot.Status), encryptionProvider(b.shoot)); err != nil {
		return err
	}
	b.rollouts, err = b.secrets().Rollouts(ctx, poolNames(b.shoot), requestedRollouts(b.shoot))
	return err
}

// initializeObservability ensures the password of the Shoot's observability components, and removes it if there are
// none.
func (b *botanist) initializeObservability(ctx context.Context) error {
	if !hasObservability(b.shoot) {
		b.observability = nil
		return b.secrets().RemoveObservability(ctx)
	}
	var err error
	b.observability, err = b.secrets().Observability(ctx, observabilityRotation(&b.shoot.Status))
	return err
}

// initializeSSHKeypair makes sure that the key pair of the Shoot's machines exists, unless SSH access is disabled.
func (b *botanist) initializeSSHKeypair(ctx context.Context) error {
	if !hasSSH(b.shoot) {
		b.sshKeypair = shootsecrets.Pair{}
		return b.secrets().RemoveSSHKeypair(ctx)
	}
	var err error
	b.sshKeypair, err = b.secrets().SSHKeypair(ctx, sshRotation(&b.shoot.Status))
	return err
}
