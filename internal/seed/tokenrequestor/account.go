package tokenrequestor

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

// account returns the ServiceAccount that a Secret names.
func (r *Reconciler) account(secret *corev1.Secret) *corev1.ServiceAccount {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: secret.Annotations[resourcesv1alpha1.ServiceAccountNamespace], Name: secret.Annotations[resourcesv1alpha1.ServiceAccountName],
	}}
	if r.inGarden() {
		account.Namespace = r.Namespace
	}
	return account
}

// targetSecret returns the Secret of the shoot into which the token is written instead, nil if there is none.
func targetSecret(secret *corev1.Secret) *corev1.Secret {
	key := metav1.ObjectMeta{Namespace: secret.Annotations[resourcesv1alpha1.TokenRequestorTargetSecretNamespace],
		Name: secret.Annotations[resourcesv1alpha1.TokenRequestorTargetSecretName]}
	if key.Name == "" || key.Namespace == "" {
		return nil
	}
	return &corev1.Secret{ObjectMeta: key}
}

func accountLabels(secret *corev1.Secret) (labels map[string]string, err error) {
	value := secret.Annotations[resourcesv1alpha1.ServiceAccountLabels]
	if value == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(value), &labels); err != nil {
		return nil, fmt.Errorf("the annotation %s must be a JSON object of labels: %w", resourcesv1alpha1.ServiceAccountLabels, err)
	}
	return labels, nil
}

func expiration(secret *corev1.Secret) (time.Duration, error) {
	value, ok := secret.Annotations[resourcesv1alpha1.ServiceAccountTokenExpirationDuration]
	if !ok {
		return DefaultExpiration, nil
	}
	duration, err := time.ParseDuration(value)
	if err == nil && duration < 10*time.Minute {
		err = fmt.Errorf("it is %s, and no token may be shorter than 10m", value)
	}
	if err != nil {
		return 0, fmt.Errorf("the annotation %s must be a duration such as 12h: %w", resourcesv1alpha1.ServiceAccountTokenExpirationDuration, err)
	}
	return duration, nil
}

// request creates or updates the ServiceAccount of a Secret in its cluster, and requests a token for it.
func (r *Reconciler) request(ctx context.Context, secret *corev1.Secret, target *Target) (
	token string, expires time.Time, err error) {
	account, err := r.reconcileAccount(ctx, secret, target)
	if err != nil {
		return "", time.Time{}, err
	}
	life, err := expiration(secret)
	if err != nil {
		return "", time.Time{}, err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(life / time.Second))}}
	if err := target.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", time.Time{}, fmt.Errorf("requesting a token of ServiceAccount %s/%s in the %s: %w", account.Namespace, account.Name,
			r.Class, err)
	}
	return request.Status.Token, request.Status.ExpirationTimestamp.Time, nil
}

func (r *Reconciler) reconcileAccount(ctx context.Context, secret *corev1.Secret, target *Target) (*corev1.ServiceAccount, error) {
	labels, err := accountLabels(secret)
	if err != nil {
		return nil, err
	}
	account := r.account(secret)
	return account, controllerutils.CreateOrPatch(ctx, target.Client, target.Reader, account, func(account *corev1.ServiceAccount) error {
		account.Labels, account.AutomountServiceAccountToken = labels, ptr.To(false)
		return nil
	})
}

// userOf returns the name of the user that a token authenticates in a cluster, empty if the cluster refuses the token.
func (t *Target) userOf(ctx context.Context, token string) (string, error) {
	if t.User != nil {
		return t.User(ctx, token)
	}
	config := rest.AnonymousClientConfig(t.Config)
	config.BearerToken = token
	authentication, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := authentication.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}
