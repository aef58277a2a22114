package restriction

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstraptokenapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// ofShoot returns the name of the shoot to which an object with this name belongs.
func ofShoot(kind graph.Kind, name string) (shoot string, ok bool) {
	for _, suffix := range graph.ShootSuffixes(kind) {
		if shoot, ok := strings.CutSuffix(name, suffix); ok && shoot != "" {
			return shoot, true
		}
	}
	return "", false
}

func (r *request) keptForOwnShoot(ctx context.Context, kind graph.Kind) error {
	name, ok := ofShoot(kind, r.name)
	if !ok {
		return forbidden("%s: its name is not that of a shoot with one of the suffixes %s", foreign(r.seed),
			strings.Join(graph.ShootSuffixes(kind), ", "))
	}
	_, err := r.ownShoot(ctx, r.namespace, name)
	return err
}

// ownShoot returns a shoot. It refuses one that is not on the seed.
func (r *request) ownShoot(ctx context.Context, namespace, name string) (*corev1beta1.Shoot, error) {
	shoot, err := r.shoot(ctx, namespace, name)
	if err == nil && !r.isOwn(shoot.Spec.SeedName) {
		err = forbidden("%s: shoot %s/%s is not on it", foreign(r.seed), namespace, name)
	}
	return shoot, err
}

func createConfigMap(ctx context.Context, r *request) error {
	if err := r.keepsSeedLabels(); err != nil {
		return err
	}
	return r.keptForOwnShoot(ctx, graph.KindConfigMap)
}

func createInternalSecret(ctx context.Context, r *request) error {
	return r.keptForOwnShoot(ctx, graph.KindInternalSecret)
}

func createSecret(ctx context.Context, r *request) error {
	secret := r.obj.(*corev1.Secret)
	if err := r.keepsSeedLabels(); err != nil {
		return err
	}
	if err := r.keepsRole(); err != nil {
		return err
	}
	if secret.Type == corev1.SecretTypeServiceAccountToken {
		// The token controller would write the token of any ServiceAccount in its annotation into it: another identity.
		return forbidden("gardenlets and extensions must not make Secrets of type %s", secret.Type)
	}
	inSystem := r.namespace == metav1.NamespaceSystem
	if inSystem && strings.HasPrefix(r.name, bootstraptokenapi.BootstrapTokenSecretPrefix) {
		return r.createBootstrapToken(ctx, secret)
	}
	if secret.Type == corev1.SecretTypeBootstrapToken {
		return forbidden("a Secret of type %s must be named %s… in %s", secret.Type, bootstraptokenapi.BootstrapTokenSecretPrefix,
			metav1.NamespaceSystem)
	}
	if r.namespace == corev1beta1.GardenerShootIssuerNamespace {
		return r.createIssuerSecret(ctx, secret)
	}
	if bucket, ok := strings.CutPrefix(r.name, constants.SecretPrefixGeneratedBackupBucket); ok && r.namespace == constants.GardenNamespace {
		return r.ownBucket(ctx, bucket)
	}
	if _, ok := ofShoot(graph.KindSecret, r.name); ok {
		return r.keptForOwnShoot(ctx, graph.KindSecret)
	}
	return r.managedSeedBackupSecret(ctx)
}

// rolesOfShoots are the roles of the Secrets that gardenlets write for shoots.
var rolesOfShoots = append(slices.Clone(constants.ControlPlaneSecretRoles), constants.GardenRoleCACluster)

// keepsRole refuses to give a Secret in the namespace garden another role than those of shoots' Secrets: Secrets with the
// roles of the landscape (its domains, for example) are copied to all seeds, and admission reads them.
func (r *request) keepsRole() error {
	role := r.obj.GetLabels()[constants.GardenRole]
	if r.namespace != constants.GardenNamespace || role == "" || role == r.before.GetLabels()[constants.GardenRole] ||
		slices.Contains(rolesOfShoots, role) {
		return nil
	}
	return forbidden("%s: %s=%s makes it the landscape's", foreign(r.seed), constants.GardenRole, role)
}

// createIssuerSecret checks the Secret with the public keys of a shoot's service account issuer. The keys are served
// under the shoot's UID, with which the name ends: a Secret with another shoot's UID would forge that shoot's
// identities.
func (r *request) createIssuerSecret(ctx context.Context, secret *corev1.Secret) error {
	if got, want := secret.Labels[constants.LabelDiscoveryPublic], constants.LabelPublicKeysServiceAccount; got != want {
		return forbidden("the label %s must be %q", constants.LabelDiscoveryPublic, want)
	}
	namespace, name := secret.Labels[constants.LabelShootNamespace], secret.Labels[constants.LabelShootName]
	if namespace == "" || name == "" {
		return forbidden("the labels %s and %s must name a shoot on seed %q", constants.LabelShootNamespace, constants.LabelShootName, r.seed)
	}
	shoot, err := r.ownShoot(ctx, namespace, name)
	if err != nil {
		return err
	}
	if uid := string(shoot.UID); uid == "" || !strings.HasSuffix(r.name, "--"+uid) {
		return forbidden("%s: the name must end with --%s, the UID of shoot %s/%s", foreign(r.seed), uid, namespace, name)
	}
	return nil
}

// managedSeedBackupSecret allows the Secret with the backup credentials in the seed template of a ManagedSeed that the
// gardenlet is responsible for. An existing Secret must be controlled by that ManagedSeed, and no other seed may use
// it.
func (r *request) managedSeedBackupSecret(ctx context.Context) error {
	list := &seedmanagementv1alpha1.ManagedSeedList{}
	if err := r.list(ctx, managedSeeds.resource, constants.GardenNamespace, list); err != nil {
		return err
	}
	wanted := graph.Vertex{Kind: graph.KindSecret, Namespace: r.namespace, Name: r.name}
	for i := range list.Items {
		managedSeed := &list.Items[i]
		managedSeed.Namespace = constants.GardenNamespace
		if owner, edges, _ := graph.EdgesOf(managedSeed, nil); !slices.Contains(edges, graph.Edge{From: wanted, To: owner}) {
			continue
		}
		err := r.ownManagedSeed(ctx, managedSeed)
		if err == nil {
			return r.managedSeedsAlone(ctx, managedSeed)
		}
		if !isRefusal(err) {
			return err
		}
	}
	return forbidden("%s", foreign(r.seed))
}

// managedSeedsAlone refuses an existing Secret that the ManagedSeed does not control, or that another seed uses.
func (r *request) managedSeedsAlone(ctx context.Context, managedSeed *seedmanagementv1alpha1.ManagedSeed) error {
	if r.old != nil && !metav1.IsControlledBy(r.old, managedSeed) {
		return forbidden("%s: ManagedSeed %s does not control it", foreign(r.seed), managedSeed.Name)
	}
	other, err := r.access.OtherSeed(ctx, r.user, secrets.resource.GroupResource(), r.namespace, r.name)
	if err != nil {
		return fmt.Errorf("looking secrets %s up in the resource dependency graph: %w", key(r.namespace, r.name), err)
	}
	if other {
		return forbidden("%s alone: another seed uses it", foreign(r.seed))
	}
	return nil
}
