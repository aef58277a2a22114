package tokenrequestor

import (
	"context"
	"fmt"
	"time"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/landscapeclock"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
)

const (
	// finalizer keeps a Secret until its ServiceAccount is deleted. Gardener's token requestor used to have the same one.
	finalizer = "resources.gardener.cloud/tokenrequestor-controller"
	// annotationAccount records the ServiceAccount of a Secret, so that it is deleted if the Secret names another one later.
	annotationAccount = "gardenlite.dev/token-requestor-account"

	// DefaultExpiration is the lifetime of tokens for Secrets that do not set one, as in Gardener.
	DefaultExpiration = 12 * time.Hour
	// maxLife limits the lifetime from which the renewal time is calculated, as in Gardener.
	maxLife = 24 * time.Hour
	// A token is renewed after renewPercent of its lifetime, plus a jitter of up to renewJitter of that, as in Gardener.
	renewPercent = 80
	renewJitter  = 0.05
	// targetPoll is the delay between two checks whether a shoot can be reached.
	targetPoll = 10 * time.Second
)

// ControllerName is the name of the controller, as in Gardener.
const ControllerName = "token-requestor"

// Reconciler fills Secrets of the seed with tokens for a garden or for shoots.
type Reconciler struct {
	SeedClient client.Client
	// SeedReader reads directly from the seed, not from a cache.
	SeedReader client.Reader
	Clock      clock.WithTicker
	// Class is the class of the Secrets: resourcesv1alpha1.ResourceManagerClassGarden or ResourceManagerClassShoot.
	Class string
	// Namespace is the namespace of all ServiceAccounts in the garden: a Secret must not choose another one.
	Namespace string
	// Target returns the cluster for whose ServiceAccounts a Secret wants a token, nil if there is none at present.
	Target func(context.Context, *corev1.Secret) (*Target, error)
	// Jitter adds a random part, up to the given factor, to a duration. It defaults to wait.Jitter.
	Jitter func(time.Duration, float64) time.Duration
}

// Target is a cluster for whose ServiceAccounts Secrets get tokens.
type Target struct {
	Client client.Client
	// Reader reads directly from the cluster, not from a cache.
	Reader client.Reader
	// Config has the address of the cluster and its CA (Host, CAData).
	Config *rest.Config
	// User returns the name of the user that a token authenticates, empty if the token is not valid (any more). By default
	// it asks the cluster with the token itself, because gardenlets may not create TokenReviews.
	User func(ctx context.Context, token string) (string, error)
}

// AddToManager adds the controller to a manager of the seed. It sets Jitter if it is not set yet. Only the metadata of Secrets
// is cached.
func (r *Reconciler) AddToManager(mgr manager.Manager, _ cluster.Cluster) error {
	if r.Jitter == nil {
		r.Jitter = wait.Jitter
	}
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&corev1.Secret{}, builder.OnlyMetadata, builder.WithPredicates(predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return r.relevant(obj) || r.inGarden() && controllerutil.ContainsFinalizer(obj, finalizer)
		}))).
		Complete(r)
}

// relevant reports whether a Secret requests a token of the reconciler.
func (r *Reconciler) relevant(obj client.Object) bool {
	has := obj.GetLabels()
	return has[resourcesv1alpha1.ResourceManagerPurpose] == resourcesv1alpha1.LabelPurposeTokenRequest &&
		has[resourcesv1alpha1.ResourceManagerClass] == r.Class
}

// inGarden reports whether the tokens are for the garden. There, ServiceAccounts are deleted with their Secrets. In a shoot they
// stay, as in Gardener: it may not be reachable any more when a Secret goes.
func (r *Reconciler) inGarden() bool { return r.Class == resourcesv1alpha1.ResourceManagerClassGarden }

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	secret := &corev1.Secret{}
	if err := r.SeedReader.Get(ctx, request.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if secret.DeletionTimestamp != nil || !r.relevant(secret) {
		return reconcile.Result{}, r.release(ctx, secret)
	}
	if err := r.check(secret); err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err) // only a change of the Secret helps
	}
	target, err := r.Target(ctx, secret)
	if err != nil || target == nil {
		return reconcile.Result{RequeueAfter: targetPoll}, err
	}
	if err := r.own(ctx, secret, target); err != nil {
		return reconcile.Result{}, err
	}
	left, err := r.untilRenewal(ctx, secret, target)
	if err == nil && left <= 0 {
		left, err = r.renew(ctx, secret, target)
	}
	return reconcile.Result{RequeueAfter: left}, err
}

// own records the ServiceAccount of a Secret for the garden, and deletes the one that the Secret named before.
func (r *Reconciler) own(ctx context.Context, secret *corev1.Secret, target *Target) error {
	if !r.inGarden() {
		return nil
	}
	name := r.account(secret).Name
	if former := secret.Annotations[annotationAccount]; former != name {
		if err := r.deleteAccount(ctx, secret, former, target); err != nil {
			return err
		}
	}
	return operation.Patch(ctx, r.SeedClient, secret, func(secret *corev1.Secret) {
		controllerutil.AddFinalizer(secret, finalizer)
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, annotationAccount, name)
	})
}

// check returns an error if the annotations of a Secret are invalid.
func (r *Reconciler) check(secret *corev1.Secret) error {
	name := client.ObjectKeyFromObject(secret)
	if secret.Annotations[resourcesv1alpha1.ServiceAccountName] == "" {
		return fmt.Errorf("secret %s asks for a token for a %s: the annotation %s must name a ServiceAccount", name,
			r.Class, resourcesv1alpha1.ServiceAccountName)
	}
	if !r.inGarden() && secret.Annotations[resourcesv1alpha1.ServiceAccountNamespace] == "" {
		return fmt.Errorf("secret %s asks for a token for a %s: the annotation %s must name the ServiceAccount's namespace", name,
			r.Class, resourcesv1alpha1.ServiceAccountNamespace)
	}
	if r.inGarden() && secret.Annotations[resourcesv1alpha1.TokenRequestorTargetSecretName] != "" {
		return fmt.Errorf("secret %s: a gardenlet may not write tokens into the garden; remove the annotation %s", name,
			resourcesv1alpha1.TokenRequestorTargetSecretName)
	}
	if _, err := expiration(secret); err != nil {
		return fmt.Errorf("secret %s: %w", name, err)
	}
	if _, err := accountLabels(secret); err != nil {
		return fmt.Errorf("secret %s: %w", name, err)
	}
	return nil
}

// untilRenewal returns the time until the token in a Secret must be renewed, 0 if the Secret has no valid token.
func (r *Reconciler) untilRenewal(ctx context.Context, secret *corev1.Secret, target *Target) (time.Duration, error) {
	due, err := time.Parse(time.RFC3339, secret.Annotations[resourcesv1alpha1.ServiceAccountTokenRenewTimestamp])
	wait := due.Sub(r.Clock.Now())
	if err != nil || wait <= 0 {
		return 0, nil
	}
	if targetSecret(secret) != nil {
		return wait, nil
	}
	content, err := contentOf(secret, wantedCA(secret, target.Config))
	if err != nil {
		return 0, err
	}
	if content.token() == "" || !content.hasCurrentCA() {
		return 0, nil
	}
	user, err := target.userOf(ctx, content.token())
	if err != nil {
		return 0, fmt.Errorf("asking the "+r.Class+" whose token is in Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	if account := r.account(secret); user != "system:serviceaccount:"+account.Namespace+":"+account.Name {
		return 0, nil
	}
	return wait, nil
}

// renew writes a new token into a Secret, and returns the time until the next renewal.
func (r *Reconciler) renew(ctx context.Context, secret *corev1.Secret, target *Target) (time.Duration, error) {
	token, expires, err := r.request(ctx, secret, target)
	if err != nil {
		return 0, err
	}
	wait := r.Jitter(min(expires.Sub(landscapeclock.Real(r.Clock)), maxLife)*renewPercent/100, renewJitter)
	before := secret.DeepCopy()
	if other := targetSecret(secret); other != nil {
		for _, key := range []string{resourcesv1alpha1.DataKeyToken, resourcesv1alpha1.DataKeyCABundle, resourcesv1alpha1.DataKeyKubeconfig} {
			delete(secret.Data, key)
		}
		err = controllerutils.CreateOrPatch(ctx, target.Client, target.Reader, other, func(other *corev1.Secret) error {
			return fill(other, token, wantedCA(secret, target.Config))
		})
	} else {
		err = fill(secret, token, wantedCA(secret, target.Config))
	}
	if err != nil {
		return 0, err
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, resourcesv1alpha1.ServiceAccountTokenRenewTimestamp,
		r.Clock.Now().UTC().Add(wait).Format(time.RFC3339))
	// The owner of the Secret may be writing its kubeconfig at the same time.
	if err := r.SeedClient.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return 0, fmt.Errorf("writing a token into Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	logf.FromContext(ctx).Info("Wrote a new token", "for", r.Class, "renewedAfter", wait)
	return wait, nil
}

// release deletes the ServiceAccount of a Secret that is deleted or requests no token any more, and the one that the Secret
// named before.
func (r *Reconciler) release(ctx context.Context, secret *corev1.Secret) error {
	if !r.inGarden() || !controllerutil.ContainsFinalizer(secret, finalizer) {
		return nil
	}
	target, err := r.Target(ctx, secret)
	if err != nil {
		return err
	}
	for _, name := range []string{r.account(secret).Name, secret.Annotations[annotationAccount]} {
		if err := r.deleteAccount(ctx, secret, name, target); err != nil {
			return err
		}
	}
	return operation.RemoveFinalizers(ctx, r.SeedClient, secret, finalizer)
}

// deleteAccount deletes a ServiceAccount of a Secret, unless another Secret needs it.
func (r *Reconciler) deleteAccount(ctx context.Context, secret *corev1.Secret, name string, target *Target) error {
	if name == "" {
		return nil
	}
	if shared, err := r.shared(ctx, secret, name); err != nil || shared {
		return err
	}
	account := r.account(secret)
	account.Name = name
	if err := target.Client.Delete(ctx, account); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ServiceAccount %s/%s in the %s: %w", account.Namespace, account.Name, r.Class, err)
	}
	return nil
}

func (r *Reconciler) shared(ctx context.Context, secret *corev1.Secret, account string) (bool, error) {
	all := &metav1.PartialObjectMetadataList{}
	all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := r.SeedReader.List(ctx, all, client.MatchingLabels{
		resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest,
		resourcesv1alpha1.ResourceManagerClass:   r.Class,
	}); err != nil {
		return false, fmt.Errorf("listing the Secrets with tokens for the %s: %w", r.Class, err)
	}
	for i := range all.Items {
		other := &all.Items[i]
		if client.ObjectKeyFromObject(other) != client.ObjectKeyFromObject(secret) && other.DeletionTimestamp == nil &&
			other.Annotations[resourcesv1alpha1.ServiceAccountName] == account {
			return true, nil
		}
	}
	return false, nil
}
