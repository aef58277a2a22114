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
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
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

// InvalidEach returns an Invalid error for each message. It is for Kubernetes functions that return messages.
func InvalidEach(path *field.Path, value any, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

// Required refuses an empty value of the field at path.
func Required(path *field.Path, value string) field.ErrorList {
	return RequiredIf(value == "", path, "must not be empty")
}

// notEmpty is like Required, for fields for which Gardener returns Invalid instead of Required.
func notEmpty(path *field.Path, value string) field.ErrorList {
	return InvalidIf(value == "", path, value, "must not be empty")
}

// Supported refuses a value that is not among the allowed ones.
func Supported[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// ForbiddenIf forbids the field at path under a condition.
func ForbiddenIf(condition bool, path *field.Path, detail string) field.ErrorList {
	if !condition {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, detail)}
}

// InvalidIf refuses the value of the field at path under a condition.
func InvalidIf(condition bool, path *field.Path, value any, detail string) field.ErrorList {
	if !condition {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, detail)}
}

// RequiredIf requires the field at path under a condition.
func RequiredIf(condition bool, path *field.Path, detail string) field.ErrorList {
	if !condition {
		return nil
	}
	return field.ErrorList{field.Required(path, detail)}
}

// Optional applies a rule to a value that is set.
func Optional[T any](value *T, path *field.Path, rule func(T, *field.Path) field.ErrorList) field.ErrorList {
	if value == nil {
		return nil
	}
	return rule(*value, path)
}

// SupportedIfSet is like Supported, for a value that may be left out.
func SupportedIfSet[T ~string](path *field.Path, value *T, allowed ...T) field.ErrorList {
	if value == nil {
		return nil
	}
	return Supported(path, *value, allowed...)
}

// immutable refuses to change a value.
var immutable = apivalidation.ValidateImmutableField

// immutableOnceSet refuses to change a value that was set before.
func immutableOnceSet[T any](newValue, oldValue *T, path *field.Path) field.ErrorList {
	if oldValue == nil {
		return nil
	}
	return immutable(newValue, oldValue, path)
}

// Distinct refuses a value that is in seen, and adds it to seen.
func Distinct[T comparable](path *field.Path, seen sets.Set[T], value T) field.ErrorList {
	if insertNew(seen, value) {
		return nil
	}
	return field.ErrorList{field.Duplicate(path, value)}
}

// distinctName is like Distinct, and also refuses an empty name.
func distinctName(path *field.Path, seen sets.Set[string], name string) field.ErrorList {
	if name == "" {
		return Required(path, name)
	}
	return Distinct(path, seen, name)
}

// insertNew adds value to seen, and reports whether it was not in the set before.
func insertNew[T comparable](seen sets.Set[T], value T) bool {
	if seen.Has(value) {
		return false
	}
	seen.Insert(value)
	return true
}

// ---- names and texts ----

// ValidateDNS1123Subdomain refuses a value that is not a DNS subdomain.
func ValidateDNS1123Subdomain(value string, path *field.Path) field.ErrorList {
	return InvalidEach(path, value, validation.IsDNS1123Subdomain(value))
}

// validateNameConsecutiveHyphens refuses names with "--", the separator in technical IDs.
func validateNameConsecutiveHyphens(name string, path *field.Path) field.ErrorList {
	return InvalidIf(strings.Contains(name, "--"), path, name, "must not contain two hyphens in a row")
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
	messages := unprefixedQualifiedName(name)
	return InvalidIf(len(messages) > 0, path, name, strings.Join(messages, "; "))
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
	return ForbiddenIf(len(refused) > 0, path, fmt.Sprintf("only letters, digits, spaces and %s are allowed, not %q", punctuation, refused))
}

// validateCABundle refuses a bundle whose first PEM block is not a certificate.
func validateCABundle(bundle string, path *field.Path) field.ErrorList {
	err := parseCertificate([]byte(bundle))
	return InvalidIf(err != nil, path, bundle, fmt.Sprintf("must be a PEM-encoded certificate: %v", err))
}

func parseCertificate(data []byte) error {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return errors.New("no PEM block of type CERTIFICATE found")
	}
	_, err := x509.ParseCertificate(block.Bytes)
	return err
}

// ---- operations ----

func operationPath() *field.Path {
	return field.NewPath("metadata", "annotations").Key(constants.GardenerOperation)
}

// ValidateOperation refuses an operation in the annotation that is not one of the allowed ones.
func ValidateOperation(annotations map[string]string, allowed ...string) field.ErrorList {
	operation := annotations[constants.GardenerOperation]
	if operation == "" {
		return nil
	}
	return Supported(operationPath(), operation, allowed...)
}

// ValidateOperationUpdate refuses to replace an operation that is not done.
func ValidateOperationUpdate(newAnnotations, oldAnnotations map[string]string) field.ErrorList {
	newOperation, oldOperation := newAnnotations[constants.GardenerOperation], oldAnnotations[constants.GardenerOperation]
	return ForbiddenIf(newOperation != "" && oldOperation != "" && newOperation != oldOperation, operationPath(),
		fmt.Sprintf("must not be %q before the operation %q is done", newOperation, oldOperation))
}

// ---- references ----

// validateCrossVersionObjectReference checks that ref refers to a Secret, a ConfigMap or, if allowed, a
// WorkloadIdentity.
func validateCrossVersionObjectReference(ref autoscalingv1.CrossVersionObjectReference, path *field.Path,
	allowWorkloadIdentity bool) field.ErrorList {
	errs := slices.Concat(
		Required(path.Child("apiVersion"), ref.APIVersion),
		Required(path.Child("kind"), ref.Kind),
		Required(path.Child("name"), ref.Name),
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
	errs = append(errs, Required(path.Child("namespace"), ref.Namespace)...)
	return append(errs, ValidateDNS1123Subdomain(ref.Namespace, path.Child("namespace"))...)
}

// ValidateLocalCredentialsRef is ValidateCredentialsRef for a reference within the object's own namespace.
func ValidateLocalCredentialsRef(ref autoscalingv1.CrossVersionObjectReference, path *field.Path) field.ErrorList {
	return validateCredentials(corev1.ObjectReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name}, path)
}

func validateCredentials(ref corev1.ObjectReference, path *field.Path) field.ErrorList {
	return slices.Concat(
		Required(path.Child("apiVersion"), ref.APIVersion),
		Required(path.Child("kind"), ref.Kind),
		Required(path.Child("name"), ref.Name),
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
		return Required(path, name)
	}
	return InvalidEach(path, name, rule(name))
}

func namespaceName(name string) []string { return apivalidation.ValidateNamespaceName(name, false) }

// ValidateResources checks that the references have distinct, non-empty names and refer to allowed kinds.
func ValidateResources(resources []gardencore.NamedResourceReference, path *field.Path, allowWorkloadIdentity bool) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, named := range resources {
		idxPath := path.Index(i)
		errs = append(errs, distinctName(idxPath.Child("name"), names, named.Name)...)
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
		errs = append(errs, Distinct(typePath, types, extension.Type)...)
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

func validateLabelValue(value string, path *field.Path) field.ErrorList {
	return InvalidEach(path, value, validation.IsValidLabelValue(value))
}

// ValidateTolerations checks tolerations of seed taints. A toleration with a value is also a duplicate if an earlier
// one tolerates its key with any value.
func ValidateTolerations(tolerations []gardencore.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, toleration := range tolerations {
		idxPath := path.Index(i)
		if toleration.Key == "" {
			errs = append(errs, Required(idxPath.Child("key"), toleration.Key)...)
		} else {
			errs = append(errs, metav1validation.ValidateLabelName(toleration.Key, idxPath.Child("key"))...)
		}
		errs = append(errs, Optional(toleration.Value, idxPath.Child("value"), validateLabelValue)...)
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
		errs = append(errs, Supported(path.Index(i), family, gardencore.IPFamilyIPv4, gardencore.IPFamilyIPv6)...)
		errs = append(errs, Distinct(path.Index(i), seen, family)...)
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

// ---- quantities ----

// integerResources are the resources that are counted in whole numbers, besides extended resources.
var integerResources = sets.New(
	corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
	corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
	corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers,
)

// validateQuantity refuses a negative quantity, and a fraction of a resource that is counted in whole numbers.
func validateQuantity(name corev1.ResourceName, value resource.Quantity, path *field.Path) field.ErrorList {
	wholeNumber := integerResources.Has(name) || isExtendedResource(name)
	return slices.Concat(
		InvalidIf(value.Sign() < 0, path, value.String(), apivalidation.IsNegativeErrorMsg),
		InvalidIf(wholeNumber && value.MilliValue()%1000 != 0, path, value.String(), "must be a whole number"),
	)
}

func isExtendedResource(name corev1.ResourceName) bool {
	native := !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
	if native || strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}
