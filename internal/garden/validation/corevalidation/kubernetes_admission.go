package corevalidation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podsecurityv1 "k8s.io/pod-security-admission/admission/api/v1"
	podsecurityv1alpha1 "k8s.io/pod-security-admission/admission/api/v1alpha1"
	podsecurityv1beta1 "k8s.io/pod-security-admission/admission/api/v1beta1"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

const (
	mutatingWebhook   = "MutatingAdmissionWebhook"
	validatingWebhook = "ValidatingAdmissionWebhook"
	imagePolicy       = "ImagePolicyWebhook"
	podSecurity       = "PodSecurity"
)

var (
	// pluginsAlwaysOn are the plugins that must not be disabled.
	pluginsAlwaysOn = sets.New(mutatingWebhook, validatingWebhook, podSecurity,
		"NamespaceLifecycle", "NodeRestriction", "Priority", "StorageObjectInUseProtection")
	// pluginsWithConfig are the plugins that read a configuration.
	pluginsWithConfig = sets.New(mutatingWebhook, validatingWebhook, podSecurity, imagePolicy,
		"EventRateLimit", "PodNodeSelector", "PodTolerationRestriction", "ResourceQuota")
	// pluginsWithKubeconfig are the plugins that send requests to a server.
	pluginsWithKubeconfig = sets.New(mutatingWebhook, validatingWebhook, imagePolicy)
)

// validateAdmissionPlugins checks the plugins up to the first one without a name. For a version that cannot be
// parsed, it returns an internal error, as Gardener does.
func validateAdmissionPlugins(plugins []gardencore.AdmissionPlugin, version string, path *field.Path) field.ErrorList {
	if _, err := (versionRange{}).contains(version); err != nil {
		return field.ErrorList{field.InternalError(path, fmt.Errorf("find the admission plugins of Kubernetes: %w", err))}
	}
	var errs field.ErrorList
	for i, plugin := range plugins {
		idxPath := path.Index(i)
		if plugin.Name == "" {
			return append(errs, field.Required(idxPath.Child("name"), "must name an admission plugin"))
		}
		errs = append(errs, validateAdmissionPlugin(plugin, version, idxPath)...)
	}
	return errs
}

func validateAdmissionPlugin(plugin gardencore.AdmissionPlugin, version string, path *field.Path) field.ErrorList {
	r, known := lookUp(plugin.Name, gardenerAdmissionPlugins, knownAdmissionPlugins)
	if !known {
		return field.ErrorList{field.Invalid(path.Child("name"), plugin.Name, "is not an admission plugin of Kubernetes")}
	}
	if err := unsupportedIn(r, version, path.Child("name"), plugin.Name); err != nil {
		return field.ErrorList{err}
	}
	hasConfig := plugin.Config != nil && len(plugin.Config.Raw) > 0
	errs := slices.Concat(
		ForbiddenIf(hasConfig && !pluginsWithConfig.Has(plugin.Name), path.Child("config"), "must not be set: the plugin has no configuration"),
		ForbiddenIf(ptr.Deref(plugin.Disabled, false) && pluginsAlwaysOn.Has(plugin.Name), path,
			"must not be disabled: Gardener needs the plugin in the Shoot"),
		ForbiddenIf(plugin.KubeconfigSecretName != nil && !pluginsWithKubeconfig.Has(plugin.Name),
			path.Child("kubeconfigSecretName"), "must not be set: the plugin uses no kubeconfig"),
	)
	if plugin.Name == podSecurity && plugin.Config != nil {
		if _, _, err := podSecurityDecoder.Decode(plugin.Config.Raw, nil, nil); err != nil {
			errs = append(errs, field.Invalid(path.Child("config"), string(plugin.Config.Raw),
				fmt.Sprintf("must be a PodSecurityConfiguration: %v", err)))
		}
	}
	return errs
}

// podSecurityDecoder reads a PodSecurityConfiguration of any version, and like kube-apiserver tolerates unknown fields.
var podSecurityDecoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(podsecurityv1alpha1.AddToScheme(scheme))
	utilruntime.Must(podsecurityv1beta1.AddToScheme(scheme))
	utilruntime.Must(podsecurityv1.AddToScheme(scheme))
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true})
}()
