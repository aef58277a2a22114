package corevalidation

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

func validateKubeAPIServer(server *gardencore.KubeAPIServerConfig, version string, options kubernetesOptions,
	workerless bool, path *field.Path) field.ErrorList {
	if server == nil {
		return nil
	}
	return slices.Concat(
		ForbiddenIf(server.EnableAnonymousAuthentication != nil && VersionAtLeast(version, "1.35"), path.Child("enableAnonymousAuthentication"),
			"must not be set from Kubernetes 1.35 on; use spec.kubernetes.kubeAPIServer.structuredAuthentication"),
		validateAdmissionPlugins(server.AdmissionPlugins, version, path.Child("admissionPlugins")),
		validateRuntimeConfig(server.RuntimeConfig, version, workerless, path.Child("runtimeConfig")),
		validateAuditConfig(server.AuditConfig, path.Child("auditConfig")),
		validateStructuredConfigs(server, path),
		validateWatchCacheSizes(server.WatchCacheSizes, version, path.Child("watchCacheSizes")),
		Optional(server.Logging, path.Child("logging"), validateAPIServerLogging),
		NotNegative(server.DefaultNotReadyTolerationSeconds, path.Child("defaultNotReadyTolerationSeconds")),
		NotNegative(server.DefaultUnreachableTolerationSeconds, path.Child("defaultUnreachableTolerationSeconds")),
		validateEncryptionConfig(server.EncryptionConfig, options.rotatesETCDKey, path.Child("encryptionConfig")),
		Optional(server.Requests, path.Child("requests"), validateAPIServerRequests),
		validateServiceAccountConfig(server.ServiceAccountConfig, options.keepsAcceptedIssuers, path.Child("serviceAccountConfig")),
		Optional(server.EventTTL, path.Child("eventTTL"), validateEventTTL),
		SupportedIfSet(path.Child("tlsMinVersion"), server.TLSMinVersion, "VersionTLS12", "VersionTLS13"),
		validateControlPlaneAutoscaling(server.Autoscaling, resourceMinimum{corev1.ResourceCPU: "20m", corev1.ResourceMemory: "200M"},
			path.Child("autoscaling")),
		validateFeatureGates(server.FeatureGates, version, path.Child("featureGates")),
		validateAPIAudiences(server.APIAudiences, path.Child("apiAudiences")),
	)
}

// ---- audit, authentication, authorization ----

func validateAuditConfig(audit *gardencore.AuditConfig, path *field.Path) field.ErrorList {
	if audit == nil || audit.AuditPolicy == nil || audit.AuditPolicy.ConfigMapRef == nil {
		return nil
	}
	return ValidateObjectReferenceNameAndNamespace(*audit.AuditPolicy.ConfigMapRef, path.Child("auditPolicy", "configMapRef"), false)
}

// validateStructuredConfigs checks the references to the configurations of
// authentication and authorization, whose feature gates must not be switched off.
func validateStructuredConfigs(server *gardencore.KubeAPIServerConfig, path *field.Path) field.ErrorList {
	validate := func(configMapName, featureGate string, path *field.Path) field.ErrorList {
		return slices.Concat(
			ForbiddenIf(switchedOff(server.FeatureGates, featureGate), path,
				fmt.Sprintf("must not be set if the feature gate %s is switched off", featureGate)),
			ForbiddenIf(configMapName == "", path.Child("configMapName"), "must name a ConfigMap"),
		)
	}
	var errs field.ErrorList
	if authentication := server.StructuredAuthentication; authentication != nil {
		errs = append(errs, validate(authentication.ConfigMapName, "StructuredAuthenticationConfiguration",
			path.Child("structuredAuthentication"))...)
	}
	if authorization := server.StructuredAuthorization; authorization != nil {
		authorizationPath := path.Child("structuredAuthorization")
		errs = append(errs, validate(authorization.ConfigMapName, "StructuredAuthorizationConfiguration", authorizationPath)...)
		errs = append(errs, RequiredIf(authorization.ConfigMapName != "" && len(authorization.Kubeconfigs) == 0,
			authorizationPath.Child("kubeconfigs"), "must name the Secrets with the kubeconfigs that the configuration refers to")...)
	}
	return errs
}

// switchedOff reports whether a feature gate is explicitly switched off.
func switchedOff(gates map[string]bool, name string) bool {
	value, set := gates[name]
	return set && !value
}

// validateServiceAccountConfig checks that tokens are valid for 30 to 90 days, and that the issuers are valid and
// distinct.
func validateServiceAccountConfig(config *gardencore.ServiceAccountConfig, keepsAcceptedIssuers bool, path *field.Path) field.ErrorList {
	const day = 24 * time.Hour
	if config == nil {
		return nil
	}
	var errs field.ErrorList
	if config.MaxTokenExpiration != nil {
		expirationPath, expiration := path.Child("maxTokenExpiration"), config.MaxTokenExpiration.Duration
		errs = slices.Concat(
			validateNotNegativeDuration(config.MaxTokenExpiration, expirationPath),
			ForbiddenIf(expiration > 0 && expiration < 30*day, expirationPath, "must be at least 720h (30 days)"),
			ForbiddenIf(expiration > 90*day, expirationPath, "must be at most 2160h (90 days)"),
		)
	}
	errs = append(errs, Optional(config.Issuer, path.Child("issuer"), validateIssuer)...)
	if keepsAcceptedIssuers {
		return errs
	}
	seen := sets.New[string]()
	for i, issuer := range config.AcceptedIssuers {
		idxPath := path.Child("acceptedIssuers").Index(i)
		errs = append(errs, validateIssuer(issuer, idxPath)...)
		if config.Issuer != nil && issuer == *config.Issuer {
			errs = append(errs, field.Invalid(idxPath, issuer, "must differ from the issuer, which is accepted anyway"))
		} else if !insertNew(seen, issuer) {
			errs = append(errs, field.Duplicate(idxPath, issuer))
		}
	}
	return errs
}

// validateIssuer checks that issuer is a URL as OpenID Connect defines it for issuers.
func validateIssuer(issuer string, path *field.Path) field.ErrorList {
	parsed, err := url.Parse(issuer)
	if err != nil {
		return field.ErrorList{field.Invalid(path, issuer, fmt.Sprintf("must be a URL: %v", err))}
	}
	return slices.Concat(
		InvalidIf(parsed.Host == "", path, issuer, "must be a URL with a host"),
		InvalidIf(parsed.Scheme != "https", path, issuer, "must have the scheme https"),
		InvalidIf(parsed.User != nil, path, issuer, "must not have user information"),
		InvalidIf(parsed.RawQuery != "", path, issuer, "must not have a query"),
		InvalidIf(parsed.Fragment != "", path, issuer, "must not have a fragment"),
	)
}

func validateAPIAudiences(audiences []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, audience := range audiences {
		errs = append(errs, Distinct(path.Index(i), seen, audience)...)
		errs = append(errs, InvalidIf(strings.Contains(audience, ","), path.Index(i), audience, "must not contain commas")...)
	}
	return errs
}

// ---- encryption of etcd ----

// validateEncryptionConfig checks that the resources are distinct, can be encrypted, and are not always encrypted
// anyway. AES-GCM requires that the key is rotated automatically.
func validateEncryptionConfig(config *gardencore.EncryptionConfig, rotatesKey bool, path *field.Path) field.ErrorList {
	if config == nil {
		return nil
	}
	var errs field.ErrorList
	seen := sets.New[schema.GroupResource]()
	for i, name := range config.Resources {
		idxPath, parsed := path.Child("resources").Index(i), schema.ParseGroupResource(name)
		errs = append(errs, InvalidEach(idxPath, name, notEncryptable(name, parsed.Group))...)
		if !insertNew(seen, parsed) {
			errs = append(errs, field.Duplicate(idxPath, name))
		}
		errs = append(errs, ForbiddenIf(parsed == corev1.Resource("secrets"), idxPath, "is always encrypted")...)
	}
	if provider := config.Provider.Type; provider != nil {
		providerPath := path.Child("provider", "type")
		errs = append(errs, Supported(providerPath, *provider,
			gardencore.EncryptionProviderTypeAESCBC, gardencore.EncryptionProviderTypeAESGCM, gardencore.EncryptionProviderTypeSecretbox)...)
		errs = append(errs, ForbiddenIf(*provider == gardencore.EncryptionProviderTypeAESGCM && !rotatesKey, providerPath,
			"requires that the key is rotated automatically; set spec.maintenance.autoRotation.credentials.etcdEncryptionKey.rotationPeriod")...)
	}
	return errs
}

// notEncryptable returns the reasons why a resource cannot be encrypted.
func notEncryptable(name, group string) []string {
	var messages []string
	for _, rule := range []struct {
		broken  bool
		message string
	}{
		{strings.ToLower(name) != name, "must be in lower case"},
		{slices.Contains([]string{"apiserveripinfo", "serviceipallocations", "servicenodeportallocations"}, name),
			"must be a resource that clients can read"},
		{strings.HasSuffix(name, "."), "must not end with a dot"},
		{strings.Contains(name, "*"), "must not have wildcards"},
		{group == "events.k8s.io", "must be called events, without a group"},
		{group == "extensions", "must not be of the group extensions, which is gone"},
	} {
		if rule.broken {
			messages = append(messages, rule.message)
		}
	}
	return messages
}

// ---- serving ----

func validateWatchCacheSizes(sizes *gardencore.WatchCacheSizes, version string, path *field.Path) field.ErrorList {
	if sizes == nil {
		return nil
	}
	var errs field.ErrorList
	if defaultPath := path.Child("default"); sizes.Default == nil {
	} else if VersionAtLeast(version, "1.35") {
		errs = append(errs, field.Forbidden(defaultPath, "must not be set from Kubernetes 1.35 on"))
	} else {
		errs = append(errs, NotNegative(sizes.Default, defaultPath)...)
	}
	for i, size := range sizes.Resources {
		idxPath := path.Child("resources").Index(i)
		errs = slices.Concat(errs,
			Required(idxPath.Child("resource"), size.Resource),
			validateWatchCacheName(size.Resource, ",. #", idxPath.Child("resource")),
			validateWatchCacheName(ptr.Deref(size.APIGroup, ""), ", #", idxPath.Child("apiGroup")),
			NotNegative(&size.CacheSize, idxPath.Child("size")),
		)
	}
	return errs
}

// validateWatchCacheName refuses names that are invalid in the flag of the kube-apiserver.
func validateWatchCacheName(name, separators string, path *field.Path) field.ErrorList {
	return slices.Concat(
		InvalidIf(strings.ToLower(name) != name, path, name, "must be in lower case"),
		InvalidIf(strings.ContainsAny(name, separators), path, name, fmt.Sprintf("must not contain any of %q", separators)),
	)
}

func validateAPIServerLogging(logging gardencore.APIServerLogging, path *field.Path) field.ErrorList {
	return slices.Concat(
		NotNegative(logging.Verbosity, path.Child("verbosity")),
		NotNegative(logging.HTTPAccessVerbosity, path.Child("httpAccessVerbosity")),
	)
}

func validateAPIServerRequests(requests gardencore.APIServerRequests, path *field.Path) field.ErrorList {
	return slices.Concat(
		between(requests.MaxNonMutatingInflight, 0, 5000, path.Child("maxNonMutatingInflight")),
		between(requests.MaxMutatingInflight, 0, 2500, path.Child("maxMutatingInflight")),
	)
}

func validateEventTTL(ttl metav1.Duration, path *field.Path) field.ErrorList {
	return between(&ttl.Duration, 0, 24*time.Hour, path)
}
