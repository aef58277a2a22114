// Package gardenerplane translates the control planes that Gardener's gardenlet deploys for shoots into those that run in the
// process: it writes the Secret that describes one (package spec) from the Deployments and Secrets of the gardenlet, and creates the
// Pods that their Deployments want, which are simulated. The controller runs in the resource manager of the seed, because it reads
// the authorities of shoots. Deployments of gardenlite's own gardenlet are left alone.
package gardenerplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
	"github.com/gardenlite/gardenlite/internal/component/cluster"
	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/controllerutils"
	"github.com/gardenlite/gardenlite/internal/seed/shootsecrets"
	"github.com/gardenlite/gardenlite/internal/shootplane/spec"
)

// ControllerName is the name of the controller.
const ControllerName = "gardener-control-planes"

// secretsPoll is the delay before Secrets are looked for again that the gardenlet has not written yet.
const secretsPoll = 2 * time.Second

// Reconciler translates the control planes of a seed.
type Reconciler struct {
	Client client.Client
	// Reader reads directly from the seed.
	Reader client.Reader
}

// AddToManager adds the controller to a manager of the seed, which caches the metadata of Deployments.
func (r *Reconciler) AddToManager(mgr manager.Manager) error {
	return component.NewControllerBuilder(mgr, ControllerName).
		For(&appsv1.Deployment{}, builder.OnlyMetadata, builder.WithPredicates(predicate.GenerationChangedPredicate{},
			predicate.NewPredicateFuncs(func(obj client.Object) bool {
				return (obj.GetName() == spec.APIServer || obj.GetName() == spec.ControllerManager) &&
					obj.GetLabels()[spec.LabelGardenRole] == spec.GardenRoleControlPlane
			}))).
		Complete(r)
}

// Reconcile translates one Deployment.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	deployment, err := r.deployment(ctx, request.Namespace, request.Name)
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case deployment == nil: // the control plane is described without it
	case !spec.IsGardeners(deployment):
		return reconcile.Result{}, r.leave(ctx, deployment)
	case deployment.DeletionTimestamp == nil:
		err = r.pods(ctx, deployment)
	default:
		err = r.decide(ctx, deployment)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	server, err := r.deployment(ctx, request.Namespace, spec.APIServer)
	if err != nil || server == nil || server.DeletionTimestamp != nil || !spec.IsGardeners(server) {
		return reconcile.Result{}, err
	}
	controllers, err := r.deployment(ctx, request.Namespace, spec.ControllerManager)
	if err != nil {
		return reconcile.Result{}, err
	}
	if controllers != nil && !spec.IsGardeners(controllers) { // that of gardenlite's gardenlet, which is not replaced yet
		controllers = nil
	}
	err = r.describe(ctx, server, controllers)
	if errors.Is(err, errMissing) {
		return reconcile.Result{RequeueAfter: secretsPoll}, nil
	}
	if err == nil {
		secrets := &shootsecrets.Manager{Client: r.Client, Reader: r.Reader, Namespace: server.Namespace}
		err = secrets.HandOver(ctx)
	}
	return reconcile.Result{}, err
}

// deployment reads a Deployment, nil if there is none.
func (r *Reconciler) deployment(ctx context.Context, namespace, name string) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	if err := r.Reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, deployment); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return deployment, nil
}

// decide says whether the data of a control plane is deleted with its API server: if the shoot is. In a migration it stays, as a
// backup does in Gardener.
func (r *Reconciler) decide(ctx context.Context, server *appsv1.Deployment) error {
	if server.Name != spec.APIServer || server.Annotations[spec.AnnotationConfirmDeletion] != "" {
		return nil
	}
	shoot, err := cluster.Shoot(ctx, r.Reader, server.Namespace)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	before := server.DeepCopy()
	purge := err == nil && shoot.DeletionTimestamp != nil
	metav1.SetMetaDataAnnotation(&server.ObjectMeta, spec.AnnotationConfirmDeletion, strconv.FormatBool(purge))
	if err := r.Client.Patch(ctx, server, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("deciding on the data of the control plane in namespace %s: %w", server.Namespace, client.IgnoreNotFound(err))
	}
	if purge {
		return r.deleteEtcds(ctx, server.Namespace)
	}
	return nil
}

// leave deletes what only Gardener's gardenlet would delete, once gardenlite's gardenlet has the control plane again.
func (r *Reconciler) leave(ctx context.Context, deployment *appsv1.Deployment) error {
	if deployment.Name != spec.APIServer {
		return nil
	}
	secret := &corev1.Secret{}
	err := r.Reader.Get(ctx, types.NamespacedName{Namespace: deployment.Namespace, Name: spec.SecretName}, secret)
	if err != nil || secret.Annotations[spec.AnnotationGeneration] == "" { // Gardener's gardenlet was never here
		return client.IgnoreNotFound(err)
	}
	if err := r.deleteEtcds(ctx, deployment.Namespace); err != nil {
		return err
	}
	before := secret.DeepCopy()
	delete(secret.Annotations, spec.AnnotationGeneration)
	return client.IgnoreNotFound(r.Client.Patch(ctx, secret, client.MergeFrom(before)))
}

// deleteEtcds deletes the objects of etcd-druid in a namespace. Their deletion has to be confirmed.
func (r *Reconciler) deleteEtcds(ctx context.Context, namespace string) error {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(schema.GroupVersionKind{Group: "druid.gardener.cloud", Version: "v1alpha1", Kind: "EtcdList"})
	if err := r.Reader.List(ctx, all, client.InNamespace(namespace)); meta.IsNoMatchError(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("listing the objects of etcd-druid in namespace %s: %w", namespace, err)
	}
	for i := range all.Items {
		etcd := &all.Items[i]
		before := etcd.DeepCopy()
		annotations := etcd.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[constants.ConfirmationDeletion] = "true"
		etcd.SetAnnotations(annotations)
		err := r.Client.Patch(ctx, etcd, client.MergeFrom(before))
		if err == nil {
			err = r.Client.Delete(ctx, etcd)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s in namespace %s: %w", etcd.GetName(), namespace, err)
		}
	}
	return nil
}

var errMissing = errors.New("the gardenlet has not written it yet")

// describe writes the Secret that describes the control plane.
func (r *Reconciler) describe(ctx context.Context, server, controllers *appsv1.Deployment) error {
	files, err := r.files(ctx, server)
	if err != nil {
		return err
	}
	hosts, err := r.hosts(ctx, server)
	if err != nil {
		return err
	}
	annotations := map[string]string{
		spec.AnnotationHosts:       strings.Join(hosts, " "),
		spec.AnnotationVersion:     version(server),
		spec.AnnotationServiceCIDR: first(flags(server)["service-cluster-ip-range"]),
		spec.AnnotationIssuers:     strings.Join(flags(server)["service-account-issuer"], " "),
		spec.AnnotationGeneration:  spec.Generation(server, controllers),
		spec.AnnotationChecksum:    spec.Checksum(files),
	}
	if controllers != nil {
		annotations[spec.AnnotationPodCIDR] = first(flags(controllers)["cluster-cidr"])
		annotations[spec.AnnotationNodeMask] = cmp.Or(first(flags(controllers)["node-cidr-mask-size"]),
			first(flags(controllers)["node-cidr-mask-size-ipv4"]))
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: server.Namespace, Name: spec.SecretName}}
	return controllerutils.CreateOrPatch(ctx, r.Client, r.Reader, secret, func(secret *corev1.Secret) error {
		secret.Annotations, secret.Data = annotations, files
		return nil
	})
}

// files returns the files of the API server. The Deployment mounts some of the Secrets; the keys of authorities are in others, which
// Gardener's secrets manager labels with their names.
func (r *Reconciler) files(ctx context.Context, server *appsv1.Deployment) (map[string][]byte, error) {
	files := map[string][]byte{}
	for volume, keys := range map[string]map[string]string{
		"ca": {shootsecrets.KeyBundle: spec.KeyCABundle}, "ca-client": {shootsecrets.KeyBundle: spec.KeyClientCABundle},
		"service-account-key":        {shootsecrets.KeyRSA: spec.KeyServiceAccountKey},
		"service-account-key-bundle": {shootsecrets.KeyBundleOfKey: spec.KeyServiceAccountBundle},
		"kubelet-client":             {corev1.TLSCertKey: spec.KeyKubeletClient, corev1.TLSPrivateKeyKey: spec.KeyKubeletClientKey},
		"etcd-encryption-secret":     {"encryption-configuration.yaml": spec.KeyEncryption},
	} {
		data, err := r.mounted(ctx, server, volume)
		if err != nil {
			return nil, err
		}
		if data != nil {
			for key, as := range keys {
				files[as] = data[key]
			}
		}
	}
	for _, authority := range []struct {
		name, certificate, key string
		// serving says that the oldest one signs: some clients may not know the new one yet.
		serving bool
	}{
		{shootsecrets.CA, spec.KeyCA, spec.KeyCAKey, true},
		{shootsecrets.CAClient, spec.KeyClientCA, spec.KeyClientCAKey, false},
		{shootsecrets.CAFrontProxy, spec.KeyFrontProxyCA, spec.KeyFrontProxyCAKey, false},
	} {
		all, err := shootsecrets.Named(ctx, r.Reader, server.Namespace, authority.name)
		if apierrors.IsNotFound(err) {
			return nil, errMissing
		}
		if err != nil {
			return nil, err
		}
		secret := all[len(all)-1]
		if authority.serving {
			secret = all[0]
		}
		files[authority.certificate], files[authority.key] = secret.Data[shootsecrets.KeyCertificate], secret.Data[shootsecrets.KeyPrivateKey]
	}
	if missing := spec.MissingKeys(files); len(missing) > 0 {
		return nil, fmt.Errorf("%s of the control plane in namespace %s: %w", strings.Join(missing, ", "), server.Namespace, errMissing)
	}
	return files, nil
}

// mounted returns the data of the Secret that the API server mounts as a volume, nil if there is no such volume.
func (r *Reconciler) mounted(ctx context.Context, server *appsv1.Deployment, volume string) (map[string][]byte, error) {
	volumes := server.Spec.Template.Spec.Volumes
	i := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == volume && v.Secret != nil })
	if i < 0 {
		return nil, nil
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: server.Namespace, Name: volumes[i].Secret.SecretName}
	if err := r.Reader.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s of the API server: %w", key, err)
	}
	return secret.Data, nil
}

// hosts returns the names in the serving certificate of the API server that the gardenlet advertises.
func (r *Reconciler) hosts(ctx context.Context, server *appsv1.Deployment) (hosts []string, err error) {
	data, err := r.mounted(ctx, server, "server")
	if err != nil || data == nil {
		return nil, err
	}
	certificates, err := certutil.ParseCertsPEM(data[corev1.TLSCertKey])
	if err != nil {
		return nil, fmt.Errorf("reading the serving certificate of Deployment %s/%s: %w", server.Namespace, server.Name, err)
	}
	for _, name := range certificates[0].DNSNames {
		if strings.HasPrefix(name, "api.") { // the others are those of Services
			hosts = append(hosts, name)
		}
	}
	return hosts, nil
}

// flags returns the values of the arguments of the first container, by the names of the flags.
func flags(deployment *appsv1.Deployment) map[string][]string {
	all := map[string][]string{}
	if containers := deployment.Spec.Template.Spec.Containers; len(containers) > 0 {
		for _, arg := range slices.Concat(containers[0].Command, containers[0].Args) {
			if name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "="); ok {
				all[name] = append(all[name], value)
			}
		}
	}
	return all
}

// first returns the first of several networks.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	value, _, _ := strings.Cut(values[0], ",")
	return value
}

// version returns the version in the tag of the image.
func version(deployment *appsv1.Deployment) string {
	image := deployment.Spec.Template.Spec.Containers[0].Image
	image, _, _ = strings.Cut(image, "@")
	return strings.TrimPrefix(image[strings.LastIndex(image, ":")+1:], "v")
}

// pods creates the Pods that a Deployment wants, and deletes those that are too many. They are simulated.
func (r *Reconciler) pods(ctx context.Context, deployment *appsv1.Deployment) error {
	wanted := ptr.Deref(deployment.Spec.Replicas, 1)
	has := &corev1.PodList{}
	if err := r.Reader.List(ctx, has, client.InNamespace(deployment.Namespace),
		client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
		return fmt.Errorf("listing the Pods of Deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	names := map[string]bool{}
	for i := range wanted {
		names[fmt.Sprintf("%s-%d", deployment.Name, i)] = true
	}
	for i := range has.Items {
		pod := &has.Items[i]
		if !names[pod.Name] && pod.DeletionTimestamp == nil {
			if err := r.Client.Delete(ctx, pod); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting Pod %s/%s: %w", pod.Namespace, pod.Name, err)
			}
		}
		delete(names, pod.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: deployment.Namespace, Name: name, Labels: deployment.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		}}
		// Without volumes and probes: what they show is not in the Pod.
		container := deployment.Spec.Template.Spec.Containers[0]
		pod.Spec.Containers = []corev1.Container{{Name: container.Name, Image: container.Image}}
		pod.Spec.AutomountServiceAccountToken = ptr.To(false)
		if err := r.Client.Create(ctx, pod); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("creating Pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	return nil
}
