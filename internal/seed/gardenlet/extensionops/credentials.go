package extensionops

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	security "github.com/gardener/gardener/pkg/apis/security/v1alpha1/constants"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReadCredentials reads the Secret or WorkloadIdentity that a reference names.
func (e Extensions) ReadCredentials(ctx context.Context, ref *corev1.ObjectReference) (client.Object, error) {
	if ref == nil {
		return nil, fmt.Errorf("there is no spec.credentialsRef: name a Secret or a WorkloadIdentity there")
	}
	var credentials client.Object
	switch {
	case ref.Kind == "Secret" && ref.APIVersion == "v1":
		credentials = &corev1.Secret{}
	case ref.Kind == "WorkloadIdentity" && ref.APIVersion == securityv1alpha1.SchemeGroupVersion.String():
		credentials = &securityv1alpha1.WorkloadIdentity{}
	default:
		return nil, fmt.Errorf("credentials cannot be a %s of %s: name a Secret or a WorkloadIdentity in spec.credentialsRef",
			ref.Kind, ref.APIVersion)
	}
	if err := e.GardenReader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, credentials); err != nil {
		return nil, fmt.Errorf("reading the credentials in %s %s/%s of the garden: %w", ref.Kind, ref.Namespace, ref.Name, err)
	}
	return credentials, nil
}

// CredentialsRef returns the reference to copied credentials for the spec of an extension resource.
func (e Extensions) CredentialsRef(name string) corev1.SecretReference {
	return corev1.SecretReference{Namespace: e.Namespace, Name: name}
}

// CopyCredentials copies credentials for an object of the garden into a Secret of the seed. It returns whether they have changed, and
// when they were written last.
func (e Extensions) CopyCredentials(ctx context.Context, name string, credentials, user client.Object) (changed bool,
	since time.Time, err error) {
	secret := &corev1.Secret{}
	err = e.SeedClient.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, secret)
	if client.IgnoreNotFound(err) != nil {
		return false, since, fmt.Errorf("reading Secret %s/%s of the seed: %w", e.Namespace, name, err)
	}
	exists := err == nil
	before := secret.DeepCopy()
	secret.Namespace, secret.Name = e.Namespace, name
	if err := e.fill(secret, credentials, user); err != nil {
		return false, since, err
	}
	since, err = time.Parse(time.RFC3339Nano, before.Annotations[constants.GardenerTimestamp])
	if exists && err == nil && equality.Semantic.DeepEqual(before, secret) {
		return false, since, nil
	}
	since = e.Clock.Now().UTC()
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, constants.GardenerTimestamp, since.Format(time.RFC3339Nano))
	if exists {
		err = e.SeedClient.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	} else {
		err = e.SeedClient.Create(ctx, secret)
	}
	if err != nil {
		return false, since, fmt.Errorf("copying credentials into Secret %s/%s of the seed: %w", e.Namespace, name, err)
	}
	return true, since, nil
}

// RemoveCredentials removes credentials from the seed.
func (e Extensions) RemoveCredentials(ctx context.Context, name string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}
	if err := e.SeedClient.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Secret %s/%s of the seed: %w", e.Namespace, name, err)
	}
	return nil
}

// fill writes credentials into a Secret as extensions expect them. The Secret of a WorkloadIdentity tells the token
// requestor which token to put into it; a token that is already in it is kept.
func (e Extensions) fill(secret *corev1.Secret, credentials, user client.Object) error {
	annotations := pick(secret.Annotations, constants.GardenerTimestamp)
	switch credentials := credentials.(type) {
	case *corev1.Secret:
		secret.Annotations, secret.Labels, secret.Data = annotations, nil, credentials.Data
		return nil
	case *securityv1alpha1.WorkloadIdentity:
		maps.Copy(annotations, pick(secret.Annotations, security.AnnotationWorkloadIdentityTokenRenewTimestamp))
		annotations[security.AnnotationWorkloadIdentityNamespace] = credentials.Namespace
		annotations[security.AnnotationWorkloadIdentityName] = credentials.Name
		about, err := e.contextObject(user)
		if err != nil {
			return err
		}
		annotations[security.AnnotationWorkloadIdentityContextObject] = about
		secret.Annotations, secret.Type = annotations, corev1.SecretTypeOpaque
		secret.Labels = map[string]string{
			security.LabelPurpose:                  security.LabelPurposeWorkloadIdentityTokenRequestor,
			security.LabelWorkloadIdentityProvider: credentials.Spec.TargetSystem.Type,
		}
		secret.Data = pick(secret.Data, security.DataKeyToken)
		if config := credentials.Spec.TargetSystem.ProviderConfig; config != nil {
			if secret.Data[security.DataKeyConfig], err = json.Marshal(config); err != nil {
				return fmt.Errorf("reading spec.targetSystem.providerConfig of WorkloadIdentity %s: %w", client.ObjectKeyFromObject(credentials), err)
			}
		}
		return nil
	}
	return fmt.Errorf("credentials cannot be a %T", credentials)
}

// contextObject returns a JSON description of the object that the tokens are for.
func (e Extensions) contextObject(user client.Object) (string, error) {
	gvk, err := e.GardenClient.GroupVersionKindFor(user)
	if err != nil {
		return "", fmt.Errorf("saying what the tokens of a WorkloadIdentity are for: %w", err)
	}
	object := securityv1alpha1.ContextObject{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: user.GetName(), UID: user.GetUID(),
	}
	if namespace := user.GetNamespace(); namespace != "" {
		object.Namespace = ptr.To(namespace)
	}
	data, err := json.Marshal(object)
	return string(data), err
}

func pick[V any](m map[string]V, key string) map[string]V {
	picked := map[string]V{}
	if value, ok := m[key]; ok {
		picked[key] = value
	}
	return picked
}
