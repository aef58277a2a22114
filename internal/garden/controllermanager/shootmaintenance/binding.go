package shootmaintenance

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit"
)

// Name prefix and label of CredentialsBindings that a maintenance has created, the same as in Gardener.
const (
	migratedPrefix = "force-migrated-"
	migratedLabel  = "credentialsbinding.gardener.cloud/status"
	migratedValue  = "force-migrated"
)

// credentialsBinding replaces a SecretBinding, which Shoots of Kubernetes 1.34 and later do not have, by a
// CredentialsBinding for the same Secret with the same quotas: the one created for another Shoot, another existing one,
// or a new one.
func (m *maintenance) credentialsBinding(ctx context.Context, c client.Client) {
	spec := &m.shoot.Spec
	if !m.crosses(34) || spec.SecretBindingName == nil || spec.CredentialsBindingName != nil {
		return
	}
	name, err := bindingFor(ctx, c, m.shoot.Namespace, *spec.SecretBindingName)
	if err != nil {
		m.note("spec.secretBindingName could not be replaced by spec.credentialsBindingName: %s", err)
		return
	}
	m.note("spec.secretBindingName was replaced by spec.credentialsBindingName: Shoots of Kubernetes 1.34 and later do not have it")
	spec.CredentialsBindingName, spec.SecretBindingName = &name, nil
}

// bindingFor returns the name of the CredentialsBinding to use in place of a SecretBinding, and creates it if
// necessary.
func bindingFor(ctx context.Context, c client.Client, namespace, name string) (string, error) {
	old := &corev1beta1.SecretBinding{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, old); err != nil {
		return "", fmt.Errorf("reading the SecretBinding %s/%s: %w", namespace, name, err)
	}
	all := &securityv1alpha1.CredentialsBindingList{}
	if err := c.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return "", fmt.Errorf("listing the CredentialsBindings of %s: %w", namespace, err)
	}
	slices.SortFunc(all.Items, func(a, b securityv1alpha1.CredentialsBinding) int { return strings.Compare(a.Name, b.Name) })
	migrated, found := migratedPrefix+name, ""
	for _, binding := range all.Items {
		switch same := isSame(&binding, old); {
		case binding.Name == migrated && !same:
			return "", fmt.Errorf("the CredentialsBinding %s/%s is not for the Secret and the quotas of the SecretBinding %s: "+
				"delete it or make it so", namespace, migrated, name)
		case binding.Name == migrated:
			return migrated, nil
		case same && found == "":
			found = binding.Name
		}
	}
	if found != "" {
		return found, nil
	}
	binding := &securityv1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: migrated, Labels: map[string]string{migratedLabel: migratedValue}},
		CredentialsRef: kit.SecretOf(old),
		Quotas:         old.Quotas,
	}
	if old.Provider != nil {
		binding.Provider.Type = old.Provider.Type
	}
	if err := c.Create(ctx, binding); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("creating the CredentialsBinding %s/%s: %w", namespace, migrated, err)
	}
	return migrated, nil
}

// isSame reports whether both bindings are for the same Secret and have the same quotas in any order.
func isSame(binding *securityv1alpha1.CredentialsBinding, old *corev1beta1.SecretBinding) bool {
	ref := binding.CredentialsRef
	same := corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name} == kit.SecretOf(old)
	return same && len(binding.Quotas) == len(old.Quotas) && !slices.ContainsFunc(binding.Quotas, func(quota corev1.ObjectReference) bool {
		return !slices.Contains(old.Quotas, quota)
	})
}
