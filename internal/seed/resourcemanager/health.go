package resourcemanager

import (
	"context"
	"fmt"
	"strconv"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/conditions"
)

// checkHealth returns the conditions ResourcesHealthy and ResourcesProgressing of objects. Each condition names the first
// object that is unhealthy or progressing.
func (t *target) checkHealth(ctx context.Context, refs []resourcesv1alpha1.ObjectReference) (
	healthy, progressing conditions.Condition, err error) {
	healthy = conditions.Condition{Type: resourcesv1alpha1.ResourcesHealthy, Status: corev1beta1.ConditionTrue,
		Reason: "ResourcesHealthy", Message: "All objects are healthy."}
	progressing = conditions.Condition{Type: resourcesv1alpha1.ResourcesProgressing, Status: corev1beta1.ConditionFalse,
		Reason: "ResourcesRolledOut", Message: "All objects are rolled out."}
	for _, ref := range refs {
		obj := emptyLike(ref)
		err := t.reader.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		missing := apierrors.IsNotFound(err) || meta.IsNoMatchError(err)
		if err != nil && !missing {
			return healthy, progressing, fmt.Errorf("reading %s: %w", text(ref), err)
		}
		skip, _ := strconv.ParseBool(obj.GetAnnotations()[resourcesv1alpha1.SkipHealthCheck])
		if healthy.Status == corev1beta1.ConditionTrue {
			if missing {
				healthy.Status, healthy.Reason, healthy.Message = corev1beta1.ConditionFalse, ref.Kind+"Missing", text(ref)+" is missing."
			} else if wrong := unhealthy(obj); wrong != "" && !skip {
				healthy.Status, healthy.Reason, healthy.Message = corev1beta1.ConditionFalse, ref.Kind+"Unhealthy", text(ref)+" is unhealthy: "+wrong
			}
		}
		if wrong := rollingOut(obj); !missing && wrong != "" && progressing.Status == corev1beta1.ConditionFalse {
			progressing.Status, progressing.Reason, progressing.Message = corev1beta1.ConditionTrue, ref.Kind+"Progressing", text(ref)+": "+wrong
		}
	}
	return healthy, progressing, nil
}

// mustBe lists the conditions that must be True for an object of a kind to be healthy.
var mustBe = map[string][]string{
	"Deployment.apps": {"Available"},
	"CustomResourceDefinition.apiextensions.k8s.io": {"NamesAccepted", "Established"},
	"APIService.apiregistration.k8s.io":             {"Available"},
	"ManagedResource.resources.gardener.cloud":      {"ResourcesApplied", "ResourcesHealthy"},
}

func unhealthy(obj *unstructured.Unstructured) string {
	kind := obj.GroupVersionKind().GroupKind().String()
	for _, wanted := range mustBe[kind] {
		if found := conditionOf(obj, wanted); found["status"] != "True" {
			return notTrue(obj, wanted, found)
		}
	}
	switch kind {
	case "StatefulSet.apps":
		return short(obj, "readyReplicas", number(obj, 1, "spec", "replicas"))
	case "DaemonSet.apps":
		return short(obj, "numberAvailable", number(obj, 0, "status", "desiredNumberScheduled"))
	case "Pod":
		if phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase"); phase != "Running" && phase != "Succeeded" {
			return fmt.Sprintf("its phase is %q", phase)
		}
	}
	if state, _, _ := unstructured.NestedString(obj.Object, "status", "lastOperation", "state"); state == "Error" || state == "Failed" {
		return "its last operation has failed"
	}
	return ""
}

// conditionOf returns the condition of the given type, nil if the object has none.
func conditionOf(obj *unstructured.Unstructured, kind string) map[string]any {
	all, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, condition := range all {
		if fields, _ := condition.(map[string]any); fields["type"] == kind {
			return fields
		}
	}
	return nil
}

// notTrue describes why a condition is not True. A Deployment reports in another condition why there are no Pods.
func notTrue(obj *unstructured.Unstructured, kind string, found map[string]any) string {
	text, separator := fmt.Sprintf("the condition %s is not True", kind), ": "
	for _, condition := range []map[string]any{found, conditionOf(obj, "ReplicaFailure")} {
		if message, _ := condition["message"].(string); message != "" {
			text, separator = text+separator+message, " "
		}
	}
	return text
}

// rollingOut describes what is not yet rolled out of a workload. It is empty if everything is, and for any other object.
func rollingOut(obj *unstructured.Unstructured) string {
	updated, wanted := "", int64(0)
	switch obj.GroupVersionKind().GroupKind().String() {
	case "Deployment.apps", "StatefulSet.apps":
		updated, wanted = "updatedReplicas", number(obj, 1, "spec", "replicas")
	case "DaemonSet.apps":
		updated, wanted = "updatedNumberScheduled", number(obj, 0, "status", "desiredNumberScheduled")
	default:
		return ""
	}
	if number(obj, 0, "status", "observedGeneration") < obj.GetGeneration() {
		return "its last change is not observed yet"
	}
	return short(obj, updated, wanted)
}

func short(obj *unstructured.Unstructured, field string, wanted int64) string {
	if has := number(obj, 0, "status", field); has < wanted {
		return fmt.Sprintf("%s is %d, and %d are wanted", field, has, wanted)
	}
	return ""
}

func number(obj *unstructured.Unstructured, byDefault int64, path ...string) int64 {
	if value, ok, _ := unstructured.NestedInt64(obj.Object, path...); ok {
		return value
	}
	return byDefault
}
