package gardenwebhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
	"github.com/gardenlite/gardenlite/internal/authz/seedidentity"
)

// kubeconfigKey is the key of a kubeconfig in a Secret.
const kubeconfigKey = "kubeconfig"

// kubeconfigSecret refuses a Secret with a kubeconfig that reads files, runs programs or impersonates a user where it
// is used: users write it, and Gardener's components use it.
func (h *handlers) kubeconfigSecret(_ context.Context, request *admissionv1.AdmissionRequest) (changedLabels, error) {
	secret := &corev1.Secret{}
	if err := decode(request.Object, secret); err != nil {
		return nil, err
	}
	kubeconfig, ok := secret.Data[kubeconfigKey]
	if !ok {
		return nil, nil
	}
	clientConfig, err := clientcmd.NewClientConfigFromBytes(kubeconfig)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	config, err := clientConfig.RawConfig()
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := validateKubeconfig(config); err != nil {
		// The value is not repeated: it has credentials.
		h.rejected(request, reasonKubeconfig)
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, secret.Name, field.ErrorList{field.Invalid(
			field.NewPath("data", kubeconfigKey), "(not shown)", fmt.Sprintf("secret contains invalid kubeconfig: %s", err))})
	}
	return nil, nil
}

func validateKubeconfig(config clientcmdapi.Config) error {
	const valid = "these are the valid fields: [client-certificate-data client-key-data token username password]"
	for user, info := range config.AuthInfos {
		switch {
		case info.ClientCertificate != "":
			return fmt.Errorf("client certificate files are not supported (user %q), %s", user, valid)
		case info.ClientKey != "":
			return fmt.Errorf("client key files are not supported (user %q), %s", user, valid)
		case info.TokenFile != "":
			return fmt.Errorf("token files are not supported (user %q), %s", user, valid)
		case info.Impersonate != "" || len(info.ImpersonateGroups) > 0:
			return fmt.Errorf("impersonation is not supported, %s", valid)
		case info.AuthProvider != nil && len(info.AuthProvider.Config) > 0:
			return fmt.Errorf("auth provider configurations are not supported (user %q), %s", user, valid)
		case info.Exec != nil:
			return fmt.Errorf("exec configurations are not supported (user %q), %s", user, valid)
		}
	}
	return nil
}

// kubeconfigSecretReference refuses an update that leaves a Secret without a kubeconfig, if an admission plugin or an
// authorizer of a Shoot needs it.
func (h *handlers) kubeconfigSecretReference(ctx context.Context, request *admissionv1.AdmissionRequest) (
	changedLabels, error) {
	secret := &corev1.Secret{}
	if err := decode(request.Object, secret); err != nil {
		return nil, err
	}
	if len(secret.Data[kubeconfigKey]) > 0 {
		return nil, nil
	}
	vertex := graph.Vertex{Kind: graph.KindSecret, Namespace: request.Namespace, Name: request.Name}
	shoots, err := h.shootsReferringTo(ctx, vertex)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	var names []string
	for _, shoot := range shoots {
		if needsKubeconfig(shoot.Spec.Kubernetes.KubeAPIServer, request.Name) {
			names = append(names, shoot.Name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "Secret"}, request.Name, fmt.Errorf(
			"data kubeconfig can't be removed from secret or set to empty because secret is in use by shoots: [%v]",
			strings.Join(names, ", ")))
	}
	return nil, nil
}

// needsKubeconfig reports whether an admission plugin or an authorizer has its kubeconfig in the Secret.
func needsKubeconfig(config *gardencorev1beta1.KubeAPIServerConfig, secret string) bool {
	if config == nil {
		return false
	}
	for _, plugin := range config.AdmissionPlugins {
		if plugin.KubeconfigSecretName != nil && *plugin.KubeconfigSecretName == secret {
			return true
		}
	}
	return config.StructuredAuthorization != nil && slices.ContainsFunc(config.StructuredAuthorization.Kubeconfigs,
		func(kubeconfig gardencorev1beta1.AuthorizerKubeconfigReference) bool {
			return kubeconfig.SecretName == secret
		})
}

// internalDomainSecret keeps the Secret with the internal domain as it is while there are Shoots, whose addresses are
// in that domain, and allows only one in a namespace.
func (h *handlers) internalDomainSecret(ctx context.Context, request *admissionv1.AdmissionRequest) (
	changedLabels, error) {
	seed, isSeed := strings.CutPrefix(request.Namespace, seedidentity.NamespacePrefix)
	if !isSeed {
		if request.Namespace != v1beta1constants.GardenNamespace {
			return nil, nil
		}
		seed = "" // all of them
	}
	secret, old := &corev1.Secret{}, &corev1.Secret{}
	if request.Operation != admissionv1.Delete {
		if err := decode(request.Object, secret); err != nil {
			return nil, err
		}
	}
	if request.Operation != admissionv1.Create {
		if err := decode(request.OldObject, old); err != nil {
			return nil, err
		}
	}
	resource := schema.GroupResource{Resource: "Secret"}
	switch request.Operation {
	case admissionv1.Create:
		if err := h.onlyInternalDomain(ctx, request.Namespace, secret.Name, "create internal domain secret"); err != nil {
			return nil, err
		}
		if _, err := domainOf(secret); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	case admissionv1.Update:
		if old.Labels[v1beta1constants.GardenRole] != v1beta1constants.GardenRoleInternalDomain &&
			secret.Labels[v1beta1constants.GardenRole] == v1beta1constants.GardenRoleInternalDomain {
			if err := h.onlyInternalDomain(ctx, request.Namespace, secret.Name, "update secret"); err != nil {
				return nil, err
			}
		}
		before, err := domainOf(old)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		now, err := domainOf(secret)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		if before != now {
			return nil, h.noShoots(ctx, seed, resource, secret.Name, "change domain")
		}
	case admissionv1.Delete:
		return nil, h.noShoots(ctx, seed, resource, old.Name, "delete internal domain secret")
	}
	return nil, nil
}

func (h *handlers) onlyInternalDomain(ctx context.Context, namespace, name, what string) error {
	exists, err := h.exist(ctx, &corev1.SecretList{}, client.InNamespace(namespace),
		client.MatchingLabels{v1beta1constants.GardenRole: v1beta1constants.GardenRoleInternalDomain})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if exists {
		return apierrors.NewConflict(schema.GroupResource{Resource: "Secret"}, name, fmt.Errorf(
			"cannot %s because there can be only one secret with the 'internal-domain' secret role per namespace", what))
	}
	return nil
}

// noShoots returns an error if there are Shoots on the seed, or any if the seed is "".
func (h *handlers) noShoots(ctx context.Context, seed string, resource schema.GroupResource, name, what string) error {
	var options []client.ListOption
	if seed != "" {
		options = append(options, client.MatchingFields{core.ShootSeedName: seed})
	}
	exists, err := h.exist(ctx, &gardencorev1beta1.ShootList{}, options...)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if exists {
		return apierrors.NewForbidden(resource, name,
			fmt.Errorf("cannot %s because there are still shoots left in the system", what))
	}
	return nil
}

// domainOf returns the domain in the annotations of a Secret.
func domainOf(secret *corev1.Secret) (string, error) {
	const provider, domain = "dns.gardener.cloud/provider", "dns.gardener.cloud/domain"
	switch {
	case secret.Annotations == nil:
		return "", errors.New("domain secret has no annotations")
	case secret.Annotations[domain] == "":
		return "", errors.New("missing dns domain annotation on domain secret")
	case secret.Annotations[provider] == "":
		return "", errors.New("missing dns provider annotation on domain secret")
	}
	return secret.Annotations[domain], nil
}
