package corevalidation

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
)

var (
	secretGVK           = corev1.SchemeGroupVersion.WithKind("Secret")
	configMapGVK        = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	internalSecretGVK   = gardencorev1beta1.SchemeGroupVersion.WithKind("InternalSecret")
	workloadIdentityGVK = securityv1alpha1.SchemeGroupVersion.WithKind("WorkloadIdentity")
	projectGVK          = gardencorev1beta1.SchemeGroupVersion.WithKind("Project")
)

// ---- building blocks ----

// invalidEach returns an Invalid error for each message. It is for Kubernetes functions that return messages.
func invalidEach(path *field.Path, value any, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

// required refuses an empty value of the field at path.
func required(path *field.Path, value string) field.ErrorList {
	if value != "" {
		return nil
	}
	return field.ErrorList{field.Required(path, "must not be empty")}
}

// notEmpty is like required, for fields for which Gardener returns Invalid instead of Required.
func notEmpty(path *field.Path, value string) field.ErrorList {
	if value != "" {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, "must not be empty")}
}

// supported refuses a value that is not among the allowed ones.
func supported[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// firstSight adds value to seen, and reports whether it was not in the set before.
func firstSight[T comparable](seen sets.Set[T], value T) bool {
	if seen.Has(value) {
		return false
	}
	seen.Insert(value)
	return true
}

// ---- names and texts ----

// ValidateName checks the names of most resources, which are DNS subdomains.
func ValidateName(name string, prefix bool) []string {
	return apivalidation.NameIsDNSSubdomain(name, prefix)
}

// ValidateDNS1123Subdomain refuses a value that is not a DNS subdomain.
func ValidateDNS1123Subdomain(value string, path *field.Path) field.ErrorList {
	return invalidEach(path, value, validation.IsDNS1123Subdomain(value))
}

// validateNameConsecutiveHyphens refuses names with "--", the separator in technical IDs.
func validateNameConsecutiveHyphens(name string, path *field.Path) field.ErrorList {
	if !strings.Contains(name, "--") {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, "must not contain two hyphens in a row")}
}

// unprefixedQualifiedName returns why name is not a qualified name without a prefix.
func unprefixedQualifiedName(name string) []string {
	if messages := validation.IsQualifiedName(name); len(messages) > 0 {
		return messages
	}
	if strings.Contains(name, "/") {
		return []string{"must not have a prefix"}
	}
	return nil
}

func validateUnprefixedQualifiedName(name string, path *field.Path) field.ErrorList {
	if messages := unprefixedQualifiedName(name); len(messages) > 0 {
		return field.ErrorList{field.Invalid(path, name, strings.Join(messages, "; "))}
	}
	return nil
}

// ValidateFreeFormText refuses texts with other characters than letters, digits,
// space and simple punctuation: dashboards and mails show these texts.
func ValidateFreeFormText(text string, path *field.Path) field.ErrorList {
	const punctuation = `.,:-_/\`
	var refused []rune
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsSpace(r) && !strings.ContainsRune(punctuation, r) {
			refused = append(refused, r)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("only letters, digits, spaces and %s are allowed, not %q", punctuation, refused))}
}

// validateCABundle refuses a bundle whose first PEM block is not a certificate.
func validateCABundle(bundle *string, path *field.Path) field.ErrorList {
	if bundle == nil {
		return nil
	}
	if err := parseCertificate([]byte(*bundle)); err != nil {
		return field.ErrorList{field.Invalid(path, *bundle, fmt.Sprintf("must be a PEM-encoded certificate: %v", err))}
	}
	return nil
}

func parseCertificate(data []byte) error {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return errors.New("no PEM block of type CERTIFICATE found")
	}
	_, err := x509.ParseCertificate(block.Bytes)
	return err
}

// ---- references ----

// validateCrossVersionObjectReference checks that ref refers to a Secret, a ConfigMap or, if allowed, a
// WorkloadIdentity.
func validateCrossVersionObjectReference(ref autoscalingv1.CrossVersionObjectReference, path *field.Path,
	allowWorkloadIdentity bool) field.ErrorList {
	errs := slices.Concat(
		required(path.Child("apiVersion"), ref.APIVersion),
		required(path.Child("kind"), ref.Kind),
		required(path.Child("name"), ref.Name),
	)
	allowed := []schema.GroupVersionKind{secretGVK, configMapGVK}
	if allowWorkloadIdentity {
		allowed = append(allowed, workloadIdentityGVK)
	}
	groupVersion, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return append(errs, field.Invalid(path, ref, fmt.Sprintf("must have an apiVersion like v1 or group/v1: %v", err)))
	}
	return append(errs, validateGVK(groupVersion.WithKind(ref.Kind), path, allowed...)...)
}

func validateGVK(gvk schema.GroupVersionKind, path *field.Path, allowed ...schema.GroupVersionKind) field.ErrorList {
	if slices.Contains(allowed, gvk) {
		return nil
	}
	names := make([]string, 0, len(allowed))
	for _, a := range allowed {
		names = append(names, a.String())
	}
	return field.ErrorList{field.NotSupported(path, gvk.String(), names)}
}

// ValidateCredentialsRef checks that ref is a complete reference, with a namespace, to a Secret, an InternalSecret or
// a WorkloadIdentity.
func ValidateCredentialsRef(ref corev1.ObjectReference, path *field.Path) field.ErrorList {
	errs := validateCredentials(ref, path)
	errs = append(errs, required(path.Child("namespace"), ref.Namespace)...)
	return append(errs, ValidateDNS1123Subdomain(ref.Namespace, path.Child("namespace"))...)
}

// ValidateLocalCredentialsRef is ValidateCredentialsRef for a reference within the
// object's own namespace.
func ValidateLocalCredentialsRef(ref autoscalingv1.CrossVersionObjectReference, path *field.Path) field.ErrorList {
	return validateCredentials(corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}, path)
}

func validateCredentials(ref corev1.ObjectReference, path *field.Path) field.ErrorList {
	return slices.Concat(
		required(path.Child("apiVersion"), ref.APIVersion),
		required(path.Child("kind"), ref.Kind),
		required(path.Child("name"), ref.Name),
		ValidateDNS1123Subdomain(ref.Name, path.Child("name")),
		validateGVK(ref.GroupVersionKind(), path, secretGVK, internalSecretGVK, workloadIdentityGVK),
	)
}

// ValidateObjectReferenceNameAndNamespace checks only the name and the namespace
// of a reference; the namespace may be left out unless it is required.
func ValidateObjectReferenceNameAndNamespace(ref corev1.ObjectReference, path *field.Path, requireNamespace bool) field.ErrorList {
	errs := requiredName(path.Child("name"), ref.Name, validation.IsDNS1123Subdomain)
	if ref.Namespace != "" || requireNamespace {
		errs = append(errs, requiredName(path.Child("namespace"), ref.Namespace, namespaceName)...)
	}
	return errs
}

// requiredName refuses a name that is empty or that the rule does not accept.
func requiredName(path *field.Path, name string, rule func(string) []string) field.ErrorList {
	if name == "" {
		return required(path, name)
	}
	return invalidEach(path, name, rule(name))
}

func namespaceName(name string) []string { return apivalidation.ValidateNamespaceName(name, false) }

// ValidateResources checks that the references have distinct, non-empty names and refer to allowed kinds.
func ValidateResources(resources []gardencore.NamedResourceReference, path *field.Path, allowWorkloadIdentity bool) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, named := range resources {
		idxPath := path.Index(i)
		if named.Name == "" {
			errs = append(errs, required(idxPath.Child("name"), named.Name)...)
		} else if !firstSight(names, named.Name) {
			errs = append(errs, field.Duplicate(idxPath.Child("name"), named.Name))
		}
		errs = append(errs, validateCrossVersionObjectReference(named.ResourceRef, idxPath.Child("resourceRef"), allowWorkloadIdentity)...)
	}
	return errs
}

var alphanumeric = regexp.MustCompile(`^[a-zA-Z0-9]+$`)

// ValidateAlphanumericResourceNames refuses names with other characters than letters and digits, to which templates
// cannot refer.
func ValidateAlphanumericResourceNames(resources []gardencore.NamedResourceReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, named := range resources {
		if !alphanumeric.MatchString(named.Name) {
			errs = append(errs, field.Invalid(path.Index(i).Child("name"), named.Name, "must consist of letters and digits"))
		}
	}
	return errs
}

// validateExtensions checks that the extension types are distinct DNS labels.
func validateExtensions(extensions []gardencore.Extension, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	types := sets.New[string]()
	for i, extension := range extensions {
		typePath := path.Index(i).Child("type")
		errs = append(errs, requiredName(typePath, extension.Type, validation.IsDNS1123Label)...)
		if !firstSight(types, extension.Type) {
			errs = append(errs, field.Duplicate(typePath, extension.Type))
		}
	}
	return errs
}

// ---- tolerations ----

// keyValueID returns key, or key=value if there is a value.
func keyValueID(key string, value *string) string {
	if value == nil {
		return key
	}
	return key + "=" + *value
}

// ValidateTolerations checks tolerations of seed taints. A toleration with a value is also a duplicate if an earlier
// one tolerates its key with any value.
func ValidateTolerations(tolerations []gardencore.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, toleration := range tolerations {
		idxPath := path.Index(i)
		if toleration.Key == "" {
			errs = append(errs, required(idxPath.Child("key"), toleration.Key)...)
		} else {
			errs = append(errs, metav1validation.ValidateLabelName(toleration.Key, idxPath.Child("key"))...)
		}
		if toleration.Value != nil {
			errs = append(errs, invalidEach(idxPath.Child("value"), *toleration.Value, validation.IsValidLabelValue(*toleration.Value))...)
		}
		id := keyValueID(toleration.Key, toleration.Value)
		if seen.HasAny(id, toleration.Key) {
			errs = append(errs, field.Duplicate(idxPath, id))
		}
		seen.Insert(id)
	}
	return errs
}

// ValidateTolerationsAgainstAllowlist refuses tolerations that the allowlist contains neither with their value nor
// without a value.
func ValidateTolerationsAgainstAllowlist(tolerations, allowlist []gardencore.Toleration, path *field.Path) field.ErrorList {
	allowed := sets.New[string]()
	for _, toleration := range allowlist {
		allowed.Insert(keyValueID(toleration.Key, toleration.Value))
	}
	var errs field.ErrorList
	for i, toleration := range tolerations {
		if !allowed.HasAny(toleration.Key, keyValueID(toleration.Key, toleration.Value)) {
			errs = append(errs, field.Forbidden(
				path.Index(i), fmt.Sprintf("only these tolerations are allowed: %s", strings.Join(sets.List(allowed), ", "))))
		}
	}
	return errs
}

// ---- networks and availability ----

// ValidateIPFamilies refuses unknown and repeated IP families.
func ValidateIPFamilies(families []gardencore.IPFamily, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[gardencore.IPFamily]()
	for i, family := range families {
		errs = append(errs, supported(path.Index(i), family, gardencore.IPFamilyIPv4, gardencore.IPFamilyIPv6)...)
		if !firstSight(seen, family) {
			errs = append(errs, field.Duplicate(path.Index(i), family))
		}
	}
	return errs
}

// primaryIPFamily returns the first of the families, or IPv4 if there is none.
func primaryIPFamily(families []gardencore.IPFamily) gardencore.IPFamily {
	if len(families) == 0 {
		return gardencore.IPFamilyIPv4
	}
	return families[0]
}

// ValidateFailureToleranceTypeValue refuses an unknown failure tolerance type.
func ValidateFailureToleranceTypeValue(value gardencore.FailureToleranceType, path *field.Path) field.ErrorList {
	return supported(path, value, gardencore.FailureToleranceTypeNode, gardencore.FailureToleranceTypeZone)
}

// ---- quantities ----

// integerResources are the resources that are counted in whole numbers, besides extended resources.
var integerResources = sets.New(
	corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
	corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
	corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
)

// validateQuantity refuses a negative quantity, and a fraction of a resource that is counted in whole numbers.
func validateQuantity(name corev1.ResourceName, value resource.Quantity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if value.Sign() < 0 {
		errs = append(errs, field.Invalid(path, value.String(), apivalidation.IsNegativeErrorMsg))
	}
	if (integerResources.Has(name) || isExtendedResource(name)) && value.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, value.String(), "must be a whole number"))
	}
	return errs
}

func isExtendedResource(name corev1.ResourceName) bool {
	native := !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
	if native || strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}
