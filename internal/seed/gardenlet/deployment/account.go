package deployment

import (
	"context"
	"fmt"

	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/authz/bootstraprules"
)

// accountToken returns a token for the ServiceAccount with which the gardenlet of an object bootstraps. The gardenlet
// deletes the account when it has its identity; at the latest it is deleted with the object.
func (b *Bootstrapper) accountToken(ctx context.Context, of client.Object) (string, error) {
	account := bootstrapAccount(of)
	account.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: seedmanagementv1alpha1.SchemeGroupVersion.String(), Kind: "ManagedSeed", Name: of.GetName(), UID: of.GetUID(),
	}}
	if err := b.GardenClient.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("creating the bootstrap ServiceAccount %s: %w", client.ObjectKeyFromObject(account), err)
	}
	if err := b.bind(ctx, of); err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(accountTokenValidity.Seconds())),
	}}
	if err := b.GardenClient.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("asking for a token of the bootstrap ServiceAccount %s: %w", client.ObjectKeyFromObject(account), err)
	}
	return request.Status.Token, nil
}

func (b *Bootstrapper) bind(ctx context.Context, of client.Object) error {
	wanted := bootstrapBinding(of)
	account := bootstrapAccount(of)
	wanted.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: bootstraprules.Role}
	wanted.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
	err := b.GardenClient.Create(ctx, wanted.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		return b.setSubjects(ctx, wanted)
	}
	if err != nil {
		return fmt.Errorf("creating ClusterRoleBinding %s for bootstrapping: %w", wanted.Name, err)
	}
	return nil
}

// disarmAccount revokes the role of the account. The garden does not let this gardenlet delete the account or its binding;
// the account is deleted with its owner, the ManagedSeed.
func (b *Bootstrapper) disarmAccount(ctx context.Context, of client.Object) error {
	return client.IgnoreNotFound(b.setSubjects(ctx, bootstrapBinding(of)))
}

func (b *Bootstrapper) setSubjects(ctx context.Context, wanted *rbacv1.ClusterRoleBinding) error {
	binding := &rbacv1.ClusterRoleBinding{}
	if err := b.GardenReader.Get(ctx, client.ObjectKeyFromObject(wanted), binding); err != nil {
		return fmt.Errorf("reading ClusterRoleBinding %s for bootstrapping: %w", wanted.Name, err)
	}
	if equality.Semantic.DeepEqual(binding.Subjects, wanted.Subjects) {
		return nil
	}
	binding.Subjects = wanted.Subjects
	if err := b.GardenClient.Update(ctx, binding); err != nil {
		return fmt.Errorf("writing ClusterRoleBinding %s for bootstrapping: %w", wanted.Name, err)
	}
	return nil
}

func bootstrapAccount(of client.Object) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: of.GetNamespace(), Name: bootstraprules.AccountPrefix + of.GetName()}}
}

func bootstrapBinding(of client.Object) *rbacv1.ClusterRoleBinding {
	name := bootstraprules.BindingPrefix + of.GetNamespace() + ":" + bootstraprules.AccountPrefix + of.GetName()
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
