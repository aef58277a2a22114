package shootclient

import (
	"context"
	"fmt"
	"time"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// sampleBinding is the name of the CredentialsBinding that the sample refers to, and of its Secret.
	sampleBinding = "sample"
	// projectTimeout is how long Create waits for the namespace of a Project that has just been created.
	projectTimeout = 10 * time.Second
)

// awaitNamespace returns the namespace of a project once it exists.
func (c *Client) awaitNamespace(ctx context.Context, project string) (namespace string, err error) {
	hasNamespace := func(ctx context.Context) (bool, error) {
		p, err := c.project(ctx, project)
		if err != nil {
			return false, err
		}
		if namespace = ptr.Deref(p.Spec.Namespace, ""); namespace == "" {
			return false, nil
		}
		err = c.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
		return !apierrors.IsNotFound(err), nil // without the right to read it, the next request tells
	}
	err = wait.PollUntilContextTimeout(ctx, c.pollInterval(), projectTimeout, true, hasNamespace)
	if wait.Interrupted(err) {
		err = fmt.Errorf("the project %s has no namespace yet: see \"kubectl get project %s\", and try again",
			project, project)
	}
	return namespace, err
}

// ensureBinding creates the CredentialsBinding that the sample refers to, with a Secret, if a project has none. The
// local provider reads no credentials.
func (c *Client) ensureBinding(ctx context.Context, shoot *corev1beta1.Shoot) error {
	if ptr.Deref(shoot.Spec.CredentialsBindingName, "") != sampleBinding {
		return nil // there is none, or the caller has chosen one
	}
	meta := metav1.ObjectMeta{Namespace: shoot.Namespace, Name: sampleBinding}
	missing := func(kind string, err error) error {
		return fmt.Errorf("the shoot refers to the CredentialsBinding %s/%s, which does not exist, "+
			"and its %s cannot be created: %w; ask an administrator of the project for both", meta.Namespace, meta.Name, kind, err)
	}
	binding := &securityv1alpha1.CredentialsBinding{ObjectMeta: meta}
	err := c.Get(ctx, client.ObjectKeyFromObject(binding), binding)
	if err == nil || !apierrors.IsNotFound(err) { // without the right to read it, the Shoot may be accepted nevertheless
		return nil
	}
	secret := &corev1.Secret{ObjectMeta: meta, Type: corev1.SecretTypeOpaque}
	secret.Labels = map[string]string{constants.LabelShootProviderPrefix + shoot.Spec.Provider.Type: "true"}
	if err := c.Client.Create(ctx, secret); client.IgnoreAlreadyExists(err) != nil {
		return missing("Secret", err)
	}
	binding = &securityv1alpha1.CredentialsBinding{ObjectMeta: meta,
		Provider:       securityv1alpha1.CredentialsBindingProvider{Type: shoot.Spec.Provider.Type},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: meta.Namespace, Name: meta.Name}}
	if err := c.Client.Create(ctx, binding); client.IgnoreAlreadyExists(err) != nil {
		return missing("CredentialsBinding", err)
	}
	return nil
}
