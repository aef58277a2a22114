package gardenwebhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1alpha1 "k8s.io/apiserver/pkg/apis/apiserver/v1alpha1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	apiservervalidation "k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	auditvalidation "k8s.io/apiserver/pkg/apis/audit/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/authz/graph"
)

// configuration is a configuration of a Shoot's kube-apiserver in a ConfigMap to which the Shoot refers.
type configuration struct {
	// purpose and key are what it is called in messages, and its key in the ConfigMap.
	purpose, key string
	// name returns the name of the ConfigMap, "" for none.
	name func(*gardencorev1beta1.KubeAPIServerConfig) string
	// depends returns what the validity depends on besides the ConfigMap and the Kubernetes version, in a comparable form.
	depends func(*gardencorev1beta1.Shoot) any
	// validate validates it for the Shoots that refer to it.
	validate func(context.Context, *handlers, string, []*gardencorev1beta1.Shoot) error
}

// configuration returns the decision on a Shoot that refers to a configuration, and on the ConfigMap while a Shoot
// does.
func (h *handlers) configuration(c configuration) decide {
	return func(ctx context.Context, request *admissionv1.AdmissionRequest) (changedLabels, error) {
		if request.Kind.Kind == "ConfigMap" {
			return nil, h.admitConfigMap(ctx, request, c)
		}
		return nil, h.admitShoot(ctx, request, c)
	}
}

func (h *handlers) admitShoot(ctx context.Context, request *admissionv1.AdmissionRequest, c configuration) error {
	shoot := &gardencorev1beta1.Shoot{}
	if err := decode(request.Object, shoot); err != nil {
		return err
	}
	name := c.name(shoot.Spec.Kubernetes.KubeAPIServer)
	if name == "" || shoot.DeletionTimestamp != nil {
		return nil
	}
	if request.Operation == admissionv1.Update {
		old := &gardencorev1beta1.Shoot{}
		if err := decode(request.OldObject, old); err != nil {
			return err
		}
		// Users and gardenlets can always annotate a Shoot.
		if apiequality.Semantic.DeepEqual(old.Spec, shoot.Spec) {
			return nil
		}
		if c.name(old.Spec.Kubernetes.KubeAPIServer) == name &&
			old.Spec.Kubernetes.Version == shoot.Spec.Kubernetes.Version &&
			(c.depends == nil || apiequality.Semantic.DeepEqual(c.depends(old), c.depends(shoot))) {
			return nil
		}
	}
	key := client.ObjectKey{Namespace: request.Namespace, Name: name}
	configMap := &corev1.ConfigMap{}
	if err := h.reader.Get(ctx, key, configMap); apierrors.IsNotFound(err) {
		return unprocessable("referenced %s ConfigMap %s does not exist: %s", c.purpose, key, err)
	} else if err != nil {
		return fmt.Errorf("could not retrieve %s ConfigMap %s: %w", c.purpose, key, err)
	}
	text, err := c.textOf(configMap)
	if err != nil {
		return unprocessable("error getting %s from ConfigMap %s: %s", c.purpose, key, err)
	}
	return c.validate(ctx, h, text, []*gardencorev1beta1.Shoot{shoot})
}

func (h *handlers) admitConfigMap(ctx context.Context, request *admissionv1.AdmissionRequest, c configuration) error {
	configMap, old := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	if err := errors.Join(decode(request.Object, configMap), decode(request.OldObject, old)); err != nil {
		return err
	}
	vertex := graph.Vertex{Kind: graph.KindConfigMap, Namespace: request.Namespace, Name: request.Name}
	referring, err := h.shootsReferringTo(ctx, vertex)
	if err != nil {
		return err
	}
	shoots := slices.DeleteFunc(referring, func(shoot *gardencorev1beta1.Shoot) bool {
		return c.name(shoot.Spec.Kubernetes.KubeAPIServer) != request.Name
	})
	if len(shoots) == 0 {
		return nil
	}
	text, err := c.textOf(configMap)
	if err != nil {
		return unprocessable("error getting %s from ConfigMap %s/%s: %s", c.purpose, request.Namespace, request.Name, err)
	}
	if before, ok := old.Data[c.key]; ok && before == text {
		return nil
	}
	return c.validate(ctx, h, text, shoots)
}

func (c configuration) textOf(configMap *corev1.ConfigMap) (string, error) {
	text, ok := configMap.Data[c.key]
	if !ok {
		return "", fmt.Errorf("missing %s key in %s ConfigMap data", c.purpose, c.key)
	}
	if text == "" {
		return "", fmt.Errorf("%s in %s key is empty", c.purpose, c.key)
	}
	return text, nil
}

var (
	auditPolicies  = decoderOf(auditv1.AddToScheme, audit.AddToScheme)
	configurations = decoderOf(apiserverv1beta1.AddToScheme, apiserverv1alpha1.AddToScheme, apiserver.AddToScheme)
)

func decoderOf(add ...func(*runtime.Scheme) error) runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, addToScheme := range add {
		utilruntime.Must(addToScheme(scheme))
	}
	return serializer.NewCodecFactory(scheme).UniversalDecoder()
}

// read decodes the text of a configuration, which has to be of the type.
func read[T runtime.Object](decoder runtime.Decoder, text, what string) (T, error) {
	obj, kind, err := decoder.Decode([]byte(text), nil, nil)
	if err != nil {
		var none T
		return none, unprocessable("failed to decode the provided %s: %s", what, err)
	}
	typed, ok := obj.(T)
	if !ok {
		return typed, fmt.Errorf("failed to cast to %s type: %v", what, kind)
	}
	return typed, nil
}

var auditPolicy = configuration{
	purpose: "audit policy", key: "policy",
	name: func(config *gardencorev1beta1.KubeAPIServerConfig) string {
		if config == nil || config.AuditConfig == nil || config.AuditConfig.AuditPolicy == nil ||
			config.AuditConfig.AuditPolicy.ConfigMapRef == nil {
			return ""
		}
		return config.AuditConfig.AuditPolicy.ConfigMapRef.Name
	},
	validate: func(_ context.Context, _ *handlers, text string, _ []*gardencorev1beta1.Shoot) error {
		policy, err := read[*audit.Policy](auditPolicies, text, "audit policy")
		if err != nil {
			return err
		}
		if errs := auditvalidation.ValidatePolicy(policy); len(errs) > 0 {
			return unprocessable("provided invalid audit policy: %v", errs)
		}
		return nil
	},
}

var authenticationConfiguration = configuration{
	purpose: "authentication configuration", key: "config.yaml",
	name: func(config *gardencorev1beta1.KubeAPIServerConfig) string {
		if config == nil || config.StructuredAuthentication == nil {
			return ""
		}
		return config.StructuredAuthentication.ConfigMapName
	},
	depends: func(shoot *gardencorev1beta1.Shoot) any {
		return []any{hasManagedIssuer(shoot), hasAnonymousAuthentication(shoot), sets.List(sets.New(issuersOf(shoot)...))}
	},
	validate: func(ctx context.Context, h *handlers, text string, shoots []*gardencorev1beta1.Shoot) error {
		config, err := read[*apiserver.AuthenticationConfiguration](configurations, text, "authentication configuration")
		if err != nil {
			return err
		}
		// A token of the Shoot's own issuer must not be accepted for another user.
		disallowed, err := h.managedIssuers(ctx, shoots)
		if err != nil {
			return err
		}
		var anonymous []string
		for _, shoot := range shoots {
			disallowed = append(disallowed, issuersOf(shoot)...)
			if hasAnonymousAuthentication(shoot) {
				anonymous = append(anonymous, shoot.Name)
			}
		}
		compiler := authenticationcel.NewDefaultCompiler()
		errs := apiservervalidation.ValidateAuthenticationConfiguration(compiler, config, disallowed)
		if len(errs) > 0 {
			return unprocessable("provided invalid authentication configuration: %v", errs)
		}
		if config.Anonymous != nil && len(anonymous) > 0 {
			return unprocessable("cannot use anonymous authentication configuration when the following shoots have the legacy "+
				"configuration enabled: %s", strings.Join(anonymous, ", "))
		}
		return nil
	},
}

func hasManagedIssuer(shoot *gardencorev1beta1.Shoot) bool {
	const issuer = v1beta1constants.AnnotationAuthenticationIssuer
	return shoot.Annotations[issuer] == v1beta1constants.AnnotationAuthenticationIssuerManaged
}

func hasAnonymousAuthentication(shoot *gardencorev1beta1.Shoot) bool {
	config := shoot.Spec.Kubernetes.KubeAPIServer
	return config != nil && config.EnableAnonymousAuthentication != nil
}

// issuersOf returns the issuers of the Shoot's own tokens.
func issuersOf(shoot *gardencorev1beta1.Shoot) []string {
	var issuers []string
	if config := shoot.Spec.Kubernetes.KubeAPIServer; config != nil && config.ServiceAccountConfig != nil {
		issuers = append(issuers, config.ServiceAccountConfig.AcceptedIssuers...)
		if config.ServiceAccountConfig.Issuer != nil {
			issuers = append(issuers, *config.ServiceAccountConfig.Issuer)
		}
	}
	for _, address := range shoot.Status.AdvertisedAddresses {
		switch address.Name {
		case v1beta1constants.AdvertisedAddressServiceAccountIssuer, v1beta1constants.AdvertisedAddressInternal,
			v1beta1constants.AdvertisedAddressExternal:
			issuers = append(issuers, address.URL)
		}
	}
	return issuers
}

// managedIssuers returns the issuers of Shoots whose issuer the garden serves.
func (h *handlers) managedIssuers(ctx context.Context, shoots []*gardencorev1beta1.Shoot) ([]string, error) {
	managed := slices.DeleteFunc(slices.Clone(shoots), func(shoot *gardencorev1beta1.Shoot) bool {
		return !hasManagedIssuer(shoot) || shoot.UID == ""
	})
	if len(managed) == 0 {
		return nil, nil
	}
	secrets := &corev1.SecretList{}
	role := client.MatchingLabels{v1beta1constants.GardenRole: v1beta1constants.GardenRoleShootServiceAccountIssuer}
	if err := h.reader.List(ctx, secrets, client.InNamespace(v1beta1constants.GardenNamespace), role); err != nil {
		return nil, fmt.Errorf("failed to list service account issuer secrets: %w", err)
	}
	if len(secrets.Items) == 0 || len(secrets.Items[0].Data["hostname"]) == 0 {
		return nil, nil
	}
	host := secrets.Items[0].Data["hostname"]
	var issuers []string
	for _, shoot := range managed {
		namespace := &corev1.Namespace{}
		if err := h.reader.Get(ctx, client.ObjectKey{Name: shoot.Namespace}, namespace); err != nil {
			return nil, fmt.Errorf("failed to get namespace %s: %w", shoot.Namespace, err)
		}
		if project := namespace.Labels[v1beta1constants.ProjectName]; project != "" {
			issuers = append(issuers, fmt.Sprintf("https://%s/projects/%s/shoots/%s/issuer", host, project, shoot.UID))
		}
	}
	return issuers, nil
}

var authorizationConfiguration = configuration{
	purpose: "authorization configuration", key: "config.yaml",
	name: func(config *gardencorev1beta1.KubeAPIServerConfig) string {
		if config == nil || config.StructuredAuthorization == nil {
			return ""
		}
		return config.StructuredAuthorization.ConfigMapName
	},
	depends: func(shoot *gardencorev1beta1.Shoot) any { return sets.List(authorizersOf(shoot)) },
	validate: func(_ context.Context, _ *handlers, text string, shoots []*gardencorev1beta1.Shoot) error {
		config, err := read[*apiserver.AuthorizationConfiguration](configurations, text, "authorization configuration")
		if err != nil {
			return err
		}
		var names []string
		for i, authorizer := range config.Authorizers {
			if authorizer.Type != apiserver.TypeWebhook || authorizer.Webhook == nil {
				continue
			}
			names = append(names, authorizer.Name)
			if !apiequality.Semantic.DeepEqual(authorizer.Webhook.ConnectionInfo, apiserver.WebhookConnectionInfo{}) {
				return unprocessable("provided invalid authorization configuration: %v", field.ErrorList{field.Forbidden(
					field.NewPath("authorizers").Index(i).Child("connectionInfo"), "connectionInfo is not allowed to be set")})
			}
			// The validation needs one. That of the Shoot is in the Secret to which its specification refers.
			config.Authorizers[i].Webhook.ConnectionInfo.Type = apiserver.AuthorizationWebhookConnectionInfoTypeInCluster
		}
		for _, shoot := range shoots {
			known := authorizersOf(shoot)
			for _, name := range names {
				if !known.Has(name) {
					return unprocessable("provided invalid authorization configuration: must provide kubeconfig secret name "+
						"reference for webhook authorizer %q in shoot %s", name, client.ObjectKeyFromObject(shoot))
				}
			}
		}
		webhooks := sets.New(string(apiserver.TypeWebhook))
		errs := apiservervalidation.ValidateAuthorizationConfiguration(
			authorizationcel.NewDefaultCompiler(), field.NewPath(""), config, webhooks, webhooks)
		if len(errs) > 0 {
			return unprocessable("provided invalid authorization configuration: %v", errs)
		}
		return nil
	},
}

// authorizersOf returns the names of the authorizers for which the Shoot has a kubeconfig.
func authorizersOf(shoot *gardencorev1beta1.Shoot) sets.Set[string] {
	names := sets.Set[string]{}
	if config := shoot.Spec.Kubernetes.KubeAPIServer; config != nil && config.StructuredAuthorization != nil {
		for _, kubeconfig := range config.StructuredAuthorization.Kubeconfigs {
			names.Insert(kubeconfig.AuthorizerName)
		}
	}
	return names
}
