package corevalidation

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
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
		forbiddenIf(server.EnableAnonymousAuthentication != nil && versionAtLeast(version, "1.35"), path.Child("enableAnonymousAuthentication"),
			"must not be set from Kubernetes 1.35 on; use spec.kubernetes.kubeAPIServer.structuredAuthentication"),
		validateAdmissionPlugins(server.AdmissionPlugins, version, path.Child("admissionPlugins")),
		validateRuntimeConfig(server.RuntimeConfig, version, workerless, path.Child("runtimeConfig")),
		validateAuditConfig(server.AuditConfig, path.Child("auditConfig")),
		validateStructuredConfigs(server, path),
		validateWatchCacheSizes(server.WatchCacheSizes, version, path.Child("watchCacheSizes")),
		validateAPIServerLogging(server.Logging, path.Child("logging")),
		notNegative(server.DefaultNotReadyTolerationSeconds, path.Child("defaultNotReadyTolerationSeconds")),
		notNegative(server.DefaultUnreachableTolerationSeconds, path.Child("defaultUnreachableTolerationSeconds")),
		validateEncryptionConfig(server.EncryptionConfig, options.rotatesETCDKey, path.Child("encryptionConfig")),
		validateAPIServerRequests(server.Requests, path.Child("requests")),
		validateServiceAccountConfig(server.ServiceAccountConfig, options.keepsAcceptedIssuers, path.Child("serviceAccountConfig")),
		validateEventTTL(server, path.Child("eventTTL")),
		validateTLSMinVersion(server.TLSMinVersion, path.Child("tlsMinVersion")),
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
			forbiddenIf(switchedOff(server.FeatureGates, featureGate), path,
				fmt.Sprintf("must not be set if the feature gate %s is switched off", featureGate)),
			forbiddenIf(configMapName == "", path.Child("configMapName"), "must name a ConfigMap"),
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
		if authorization.ConfigMapName != "" && len(authorization.Kubeconfigs) == 0 {
			errs = append(errs, field.Required(authorizationPath.Child("kubeconfigs"),
				"must name the Secrets with the kubeconfigs that the configuration refers to"))
		}
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
			forbiddenIf(expiration > 0 && expiration < 30*day, expirationPath, "must be at least 720h (30 days)"),
			forbiddenIf(expiration > 90*day, expirationPath, "must be at most 2160h (90 days)"),
		)
	}
	if config.Issuer != nil {
		errs = append(errs, validateIssuer(*config.Issuer, path.Child("issuer"))...)
	}
	if keepsAcceptedIssuers {
		return errs
	}
	seen := sets.New[string]()
	for i, issuer := range config.AcceptedIssuers {
		idxPath := path.Child("acceptedIssuers").Index(i)
		errs = append(errs, validateIssuer(issuer, idxPath)...)
		if config.Issuer != nil && issuer == *config.Issuer {
			errs = append(errs, field.Invalid(idxPath, issuer, "must differ from the issuer, which is accepted anyway"))
		} else if !firstSight(seen, issuer) {
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
		invalidIf(parsed.Host == "", path, issuer, "must be a URL with a host"),
		invalidIf(parsed.Scheme != "https", path, issuer, "must have the scheme https"),
		invalidIf(parsed.User != nil, path, issuer, "must not have user information"),
		invalidIf(parsed.RawQuery != "", path, issuer, "must not have a query"),
		invalidIf(parsed.Fragment != "", path, issuer, "must not have a fragment"),
	)
}

func validateAPIAudiences(audiences []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, audience := range audiences {
		if !firstSight(seen, audience) {
			errs = append(errs, field.Duplicate(path.Index(i), audience))
		}
		errs = append(errs, invalidIf(strings.Contains(audience, ","), path.Index(i), audience, "must not contain commas")...)
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
		errs = append(errs, invalidEach(idxPath, name, notEncryptable(name, parsed.Group))...)
		if !firstSight(seen, parsed) {
			errs = append(errs, field.Duplicate(idxPath, name))
		}
		errs = append(errs, forbiddenIf(parsed == corev1.Resource("secrets"), idxPath, "is always encrypted")...)
	}
	if provider := config.Provider.Type; provider != nil {
		providerPath := path.Child("provider", "type")
		errs = append(errs, supported(providerPath, *provider,
			gardencore.EncryptionProviderTypeAESCBC, gardencore.EncryptionProviderTypeAESGCM, gardencore.EncryptionProviderTypeSecretbox)...)
		errs = append(errs, forbiddenIf(*provider == gardencore.EncryptionProviderTypeAESGCM && !rotatesKey, providerPath,
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
	} else if versionAtLeast(version, "1.35") {
		errs = append(errs, field.Forbidden(defaultPath, "must not be set from Kubernetes 1.35 on"))
	} else {
		errs = append(errs, notNegative(sizes.Default, defaultPath)...)
	}
	for i, size := range sizes.Resources {
		idxPath := path.Child("resources").Index(i)
		errs = slices.Concat(errs,
			required(idxPath.Child("resource"), size.Resource),
			validateWatchCacheName(size.Resource, ",. #", idxPath.Child("resource")),
			validateWatchCacheName(ptr.Deref(size.APIGroup, ""), ", #", idxPath.Child("apiGroup")),
			notNegative(&size.CacheSize, idxPath.Child("size")),
		)
	}
	return errs
}

// validateWatchCacheName refuses names that are invalid in the flag of the kube-apiserver.
func validateWatchCacheName(name, separators string, path *field.Path) field.ErrorList {
	return slices.Concat(
		invalidIf(strings.ToLower(name) != name, path, name, "must be in lower case"),
		invalidIf(strings.ContainsAny(name, separators), path, name, fmt.Sprintf("must not contain any of %q", separators)),
	)
}

func validateAPIServerLogging(logging *gardencore.APIServerLogging, path *field.Path) field.ErrorList {
	if logging == nil {
		return nil
	}
	return slices.Concat(
		notNegative(logging.Verbosity, path.Child("verbosity")),
		notNegative(logging.HTTPAccessVerbosity, path.Child("httpAccessVerbosity")),
	)
}

func validateAPIServerRequests(requests *gardencore.APIServerRequests, path *field.Path) field.ErrorList {
	if requests == nil {
		return nil
	}
	return slices.Concat(
		between(requests.MaxNonMutatingInflight, 0, 5000, path.Child("maxNonMutatingInflight")),
		between(requests.MaxMutatingInflight, 0, 2500, path.Child("maxMutatingInflight")),
	)
}

func validateEventTTL(server *gardencore.KubeAPIServerConfig, path *field.Path) field.ErrorList {
	if server.EventTTL == nil {
		return nil
	}
	return between(&server.EventTTL.Duration, 0, 24*time.Hour, path)
}

func validateTLSMinVersion(version *string, path *field.Path) field.ErrorList {
	if version == nil {
		return nil
	}
	return supported(path, *version, "VersionTLS12", "VersionTLS13")
}
