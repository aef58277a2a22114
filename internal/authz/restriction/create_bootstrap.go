package restriction

import (
	"context"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	bootstraptokenapi "k8s.io/cluster-bootstrap/token/api"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
)

// The parts of the description that gardenlets give a bootstrap token.
const (
	tokenDescriptionPrefix   = "A bootstrap token for the Gardenlet for "
	tokenDescriptionSuffix   = "."
	managedSeedInDescription = "seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource "
	gardenletInDescription   = "seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource "
)

func createCertificateSigningRequest(_ context.Context, r *request) error {
	csr := r.obj.(*certificatesv1.CertificateSigningRequest)
	wanted, err := bootstraprules.Parse(csr.Spec.Request)
	if err != nil {
		return badRequest("%v", err)
	}
	seed, why := bootstraprules.SeedOf(wanted, csr.Spec.Usages)
	if why != "" {
		return forbidden("only certificates for seeds can be asked for: %s", why)
	}
	return r.own(&seed)
}

func createClusterRoleBinding(ctx context.Context, r *request) error {
	rest, ok := strings.CutPrefix(r.name, bootstraprules.BindingPrefix)
	namespace, account, _ := strings.Cut(rest, ":")
	name, isBootstrapAccount := strings.CutPrefix(account, bootstraprules.AccountPrefix)
	if !ok || !isBootstrapAccount || namespace == "" || name == "" {
		return forbidden("%s: its name is not %s<namespace>:%s<ManagedSeed>", foreign(r.seed), bootstraprules.BindingPrefix,
			bootstraprules.AccountPrefix)
	}
	binding := r.obj.(*rbacv1.ClusterRoleBinding)
	if want := (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: bootstraprules.Role}); binding.RoleRef != want {
		return forbidden("the binding must be to the ClusterRole %s", bootstraprules.Role)
	}
	// Bound to another subject, the role would let that subject request a certificate as any seed.
	for _, subject := range binding.Subjects {
		if subject != (rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}) {
			return forbidden("the binding must be of the ServiceAccount %s/%s only, not of %s %s", namespace, account,
				subject.Kind, key(subject.Namespace, subject.Name))
		}
	}
	return r.managedSeedToBootstrap(ctx, namespace, name)
}

func createServiceAccount(ctx context.Context, r *request) error {
	if r.namespace == r.seedNamespace() {
		return r.validateLabels(ctx)
	}
	name, ok := strings.CutPrefix(r.name, bootstraprules.AccountPrefix)
	if !ok {
		return forbidden("%s", foreign(r.seed))
	}
	if err := r.addsNoSecrets(); err != nil {
		return err
	}
	return r.managedSeedToBootstrap(ctx, r.namespace, name)
}

// validateLabels refuses labels of an extension's ServiceAccount, except the one with the name of the ControllerRegistration
// of the extension on the seed. Roles for extensions select accounts by labels: with the labels of another extension,
// or any others that a role selects, the account would have permissions that the seed does not have.
func (r *request) validateLabels(ctx context.Context) error {
	for label, value := range r.obj.GetLabels() {
		if was, had := r.before.GetLabels()[label]; had && was == value {
			continue
		}
		if label != constants.LabelControllerRegistrationName {
			return forbidden("%s: the label %s is not for gardenlets to give a ServiceAccount", foreign(r.seed), label)
		}
		name, _ := strings.CutPrefix(r.name, constants.ExtensionGardenServiceAccountPrefix)
		installation := &corev1beta1.ControllerInstallation{}
		if err := r.get(ctx, controllerInstallations.resource, "", name, installation); err != nil {
			return err
		}
		if seed := installation.Spec.SeedRef; seed == nil || seed.Name != r.seed || installation.Spec.RegistrationRef.Name != value {
			return forbidden("%s: ControllerInstallation %s is not of ControllerRegistration %s on it", foreign(r.seed), name, value)
		}
	}
	return nil
}

func (r *request) createBootstrapToken(ctx context.Context, secret *corev1.Secret) error {
	data := func(key string) string {
		if value, ok := secret.StringData[key]; ok {
			return value
		}
		return string(secret.Data[key])
	}
	if secret.Type != corev1.SecretTypeBootstrapToken {
		return forbidden("the type must be %s", corev1.SecretTypeBootstrapToken)
	}
	for _, usage := range []string{bootstraptokenapi.BootstrapTokenUsageAuthentication, bootstraptokenapi.BootstrapTokenUsageSigningKey} {
		if data(usage) != "true" {
			return forbidden("%s must be true", usage)
		}
	}
	_, inData := secret.Data[bootstraptokenapi.BootstrapTokenExtraGroupsKey]
	_, inText := secret.StringData[bootstraptokenapi.BootstrapTokenExtraGroupsKey]
	if inData || inText {
		return forbidden("%s must not be set", bootstraptokenapi.BootstrapTokenExtraGroupsKey)
	}
	kind, namespace, name := describedBy(data(bootstraptokenapi.BootstrapTokenDescriptionKey))
	if want := bootstraprules.TokenSecret(namespace, name); kind != "" && r.name != want {
		// Under the name of another token, the other gardenlet would take it for its own.
		return forbidden("%s: the Secret with a bootstrap token for %s/%s must be named %s", foreign(r.seed), namespace, name, want)
	}
	switch kind {
	case managedSeedInDescription:
		return r.managedSeedToBootstrap(ctx, namespace, name)
	case gardenletInDescription:
		return r.gardenletToBootstrap(ctx, namespace, name)
	}
	return forbidden("%s: %s must say for which ManagedSeed or Gardenlet the token is", foreign(r.seed),
		bootstraptokenapi.BootstrapTokenDescriptionKey)
}

// describedBy parses a bootstrap token's description. It accepts only the exact format of gardenlets, so that all
// readers find the same object in it.
func describedBy(description string) (kind, namespace, name string) {
	description, ok := strings.CutPrefix(description, tokenDescriptionPrefix)
	if !ok {
		return "", "", ""
	}
	for _, kind := range []string{managedSeedInDescription, gardenletInDescription} {
		of, ok := strings.CutPrefix(description, kind)
		if !ok {
			continue
		}
		of, ended := strings.CutSuffix(of, tokenDescriptionSuffix)
		namespace, name, both := strings.Cut(of, "/")
		if ended && both && namespace != "" && name != "" && !strings.Contains(name, "/") {
			return kind, namespace, name
		}
	}
	return "", "", ""
}

// managedSeedToBootstrap refuses a ManagedSeed that is not the seed's, or whose gardenlet has a valid client certificate
// and no user has requested a new one.
func (r *request) managedSeedToBootstrap(ctx context.Context, namespace, name string) error {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{}
	if err := r.get(ctx, managedSeeds.resource, namespace, name, managedSeed); err != nil {
		return err
	}
	managedSeed.Namespace, managedSeed.Name = namespace, name
	if err := r.ownManagedSeed(ctx, managedSeed); err != nil {
		return err
	}
	if bootstraprules.RequestsNewKubeconfig(managedSeed) {
		return nil
	}
	seed := &corev1beta1.Seed{}
	found, err := r.find(ctx, seeds.resource, "", name, seed)
	if err != nil || !found || !bootstraprules.IsBootstrapped(managedSeed, seed, r.clock.Now()) {
		return err
	}
	return forbidden("seed %q is bootstrapped already: annotate its ManagedSeed or Gardenlet with %s=%s to have that done again",
		name, constants.GardenerOperation, constants.GardenerOperationRenewKubeconfig)
}

func (r *request) gardenletToBootstrap(ctx context.Context, namespace, name string) error {
	if namespace != constants.GardenNamespace || name != r.seed {
		return forbidden("Gardenlet %s/%s does not belong to seed %q", namespace, name, r.seed)
	}
	gardenlet := &seedmanagementv1alpha1.Gardenlet{}
	if err := r.get(ctx, gardenlets.resource, namespace, name, gardenlet); err != nil {
		return err
	}
	// The gardenlet itself reports the expiration of its certificate, so that is no reason for a token. A token that
	// the gardenlet created could outlive its Seed.
	if !bootstraprules.RequestsNewKubeconfig(gardenlet) {
		return forbidden("seed %q is bootstrapped already: annotate its Gardenlet with %s=%s to have that done again", name,
			constants.GardenerOperation, constants.GardenerOperationRenewKubeconfig)
	}
	return nil
}
