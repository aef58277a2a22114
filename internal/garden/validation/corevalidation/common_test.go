package corevalidation

import (
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// wantErrors compares errors by type and path, such as "Required spec.type", in any order.
func wantErrors(t *testing.T, got field.ErrorList, want ...string) {
	t.Helper()
	var short []string
	for _, err := range got {
		short = append(short, strings.TrimPrefix(string(err.Type), "FieldValue")+" "+err.Field)
	}
	slices.Sort(short)
	want = slices.Sorted(slices.Values(want))
	if !slices.Equal(short, want) {
		t.Errorf("got errors %q, want %q\n%v", short, want, got.ToAggregate())
	}
}

// mutation is a change of a valid object and the errors that it must lead to.
type mutation[T any] struct {
	name   string
	change func(*T)
	want   []string
}

// runMutations checks that the object that valid returns is accepted, and leads to the wanted errors after each
// change.
func runMutations[T any](t *testing.T, valid func() *T, validate func(*T) field.ErrorList, cases []mutation[T]) {
	t.Helper()
	t.Run("valid", func(t *testing.T) { wantErrors(t, validate(valid())) })
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			object := valid()
			c.change(object)
			wantErrors(t, validate(object), c.want...)
		})
	}
}

// after returns the validation of an update of a valid object.
func after[T any](valid func() *T, validate func(newObject, oldObject *T) field.ErrorList) func(*T) field.ErrorList {
	return func(newObject *T) field.ErrorList { return validate(newObject, valid()) }
}

func objectMeta(name, namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, ResourceVersion: "1", UID: "uid"}
}

func secretRef(name, namespace string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Name: name, Namespace: namespace}
}

func quantity(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }

func inDays(days int) *metav1.Time { return ptr.To(metav1.NewTime(time.Now().AddDate(0, 0, days))) }

var testPath = field.NewPath("p")

func TestReferences(t *testing.T) {
	credentials := func(change func(*corev1.ObjectReference)) field.ErrorList {
		ref := secretRef("name", "namespace")
		change(ref)
		return ValidateCredentialsRef(*ref, testPath)
	}
	for _, c := range []struct {
		name string
		got  field.ErrorList
		want []string
	}{
		{"credentials", credentials(func(*corev1.ObjectReference) {}), nil},
		{"credentials in an internal secret", credentials(func(r *corev1.ObjectReference) {
			r.APIVersion, r.Kind = "core.gardener.cloud/v1beta1", "InternalSecret"
		}), nil},
		{"credentials in a workload identity", credentials(func(r *corev1.ObjectReference) {
			r.APIVersion, r.Kind = "security.gardener.cloud/v1alpha1", "WorkloadIdentity"
		}), nil},
		{"credentials in a config map", credentials(func(r *corev1.ObjectReference) { r.Kind = "ConfigMap" }), []string{"NotSupported p"}},
		{"no credentials", credentials(func(r *corev1.ObjectReference) { *r = corev1.ObjectReference{} }), []string{
			"Required p.apiVersion", "Required p.kind", "Required p.name", "Invalid p.name", "Required p.namespace",
			"Invalid p.namespace", "NotSupported p"}},
		{"local credentials", ValidateLocalCredentialsRef(
			autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "a"}, testPath), nil},
		{"resources", ValidateResources([]gardencore.NamedResourceReference{
			{Name: "a", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x"}},
			{Name: "a", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Pod", Name: "x"}},
			{ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "a/b/c", Kind: "Secret"}},
			{Name: "b", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "security.gardener.cloud/v1alpha1",
				Kind: "WorkloadIdentity", Name: "x"}},
		}, testPath, false), []string{"Duplicate p[1].name", "NotSupported p[1].resourceRef", "Required p[2].name",
			"Required p[2].resourceRef.name",
			"Invalid p[2].resourceRef", "NotSupported p[3].resourceRef"}},
		{"resources with a workload identity", ValidateResources([]gardencore.NamedResourceReference{
			{Name: "b", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "security.gardener.cloud/v1alpha1",
				Kind: "WorkloadIdentity", Name: "x"}},
		}, testPath, true), nil},
		{"a name without namespace", ValidateObjectReferenceNameAndNamespace(corev1.ObjectReference{Name: "a"}, testPath, false), nil},
		{"a required namespace", ValidateObjectReferenceNameAndNamespace(corev1.ObjectReference{Name: "A_"}, testPath, true),
			[]string{"Invalid p.name", "Required p.namespace"}},
		{"a bad namespace", ValidateObjectReferenceNameAndNamespace(corev1.ObjectReference{Namespace: "a.b"}, testPath, false),
			[]string{"Required p.name", "Invalid p.namespace"}},
		{"extensions", validateExtensions([]gardencore.Extension{{Type: "a"}, {Type: "a"}, {}, {Type: "a.b"}}, testPath),
			[]string{"Duplicate p[1].type", "Required p[2].type", "Invalid p[3].type"}},
	} {
		t.Run(c.name, func(t *testing.T) { wantErrors(t, c.got, c.want...) })
	}
}

func TestTolerations(t *testing.T) {
	tolerations := []gardencore.Toleration{{Key: "a"}, {Key: "a", Value: ptr.To("v")}, {}, {Key: "b", Value: ptr.To("?")},
		{Key: "b", Value: ptr.To("w")}}
	wantErrors(t, ValidateTolerations(tolerations, testPath), "Duplicate p[1]", "Required p[2].key", "Invalid p[3].value")
	allowed := []gardencore.Toleration{{Key: "a"}, {Key: "b", Value: ptr.To("v")}}
	asked := []gardencore.Toleration{{Key: "a", Value: ptr.To("any")}, {Key: "b", Value: ptr.To("v")},
		{Key: "b", Value: ptr.To("w")}, {Key: "b"}}
	wantErrors(t, ValidateTolerationsAgainstAllowlist(asked, allowed, testPath), "Forbidden p[2]", "Forbidden p[3]")
}

func TestQuantities(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        []string
	}{
		{"cpu", "100m", nil},
		{"cpu", "-1", []string{"Invalid p"}},
		{"pods", "1500m", []string{"Invalid p"}},
		{"nvidia.com/gpu", "1500m", []string{"Invalid p"}},
		{"nvidia.com/gpu", "2", nil},
		{"example.kubernetes.io/x", "1500m", nil},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			wantErrors(t, validateQuantity(corev1.ResourceName(c.name), resource.MustParse(c.value), testPath), c.want...)
		})
	}
}

func TestTexts(t *testing.T) {
	wantErrors(t, ValidateFreeFormText("Größe 1, a-b_c/d\\e: ok.", testPath))
	wantErrors(t, ValidateFreeFormText("<b>", testPath), "Forbidden p")
	wantErrors(t, Optional(nil, testPath, validateCABundle))
	wantErrors(t, validateCABundle("-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----", testPath), "Invalid p")
}
