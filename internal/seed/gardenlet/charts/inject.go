package charts

import (
	"slices"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// GardenMountPath is where extensions find their kubeconfig for the garden and its token, as in Gardener.
	GardenMountPath = "/var/run/secrets/gardener.cloud/garden/generic-kubeconfig"

	gardenVolume = "garden-kubeconfig"
	volumeMode   = int64(0o644)
)

// IsWorkloadIn reports whether an object is a workload in the namespace. Its Pods get access to the garden and the seed's name.
func IsWorkloadIn(obj *unstructured.Unstructured, namespace string) bool {
	return podSpecPath(obj) != nil && obj.GetNamespace() == namespace
}

// WantsGarden reports whether a workload gets the kubeconfig for the garden. It can opt out with a label.
func WantsGarden(obj *unstructured.Unstructured) bool {
	value, ok := obj.GetLabels()[constants.LabelInjectGardenKubeconfig]
	return !ok || value == "true"
}

// podSpecPath returns the path to the Pod specification in a workload, nil for any other object.
func podSpecPath(obj *unstructured.Unstructured) []string {
	switch gvk := obj.GroupVersionKind(); {
	case gvk.Group == appsv1.GroupName && slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"}, gvk.Kind),
		gvk.Group == batchv1.GroupName && gvk.Kind == "Job":
		return []string{"spec", "template", "spec"}
	case gvk.Group == batchv1.GroupName && gvk.Kind == "CronJob":
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	return nil
}

// SetEnv sets a variable in all containers of a workload.
func SetEnv(obj *unstructured.Unstructured, name, value string) {
	changeContainers(obj, func(container map[string]any) {
		setNamed(container, "env", map[string]any{"name": name, "value": value})
	})
}

// InjectGardenKubeconfig mounts the kubeconfig of one Secret and the token of another into a workload. It does not change a
// workload that brings its own kubeconfig.
func InjectGardenKubeconfig(obj *unstructured.Unstructured, kubeconfigSecret, tokenSecret string) {
	own := false
	changeContainers(obj, func(container map[string]any) {
		env, _, _ := unstructured.NestedSlice(container, "env")
		own = own || slices.ContainsFunc(env, named(constants.EnvGenericGardenKubeconfig))
	})
	if own {
		return
	}
	changePodSpec(obj, func(spec map[string]any) {
		setNamed(spec, "volumes", map[string]any{"name": gardenVolume, "projected": map[string]any{
			"defaultMode": volumeMode,
			"sources": []any{
				secretFile(kubeconfigSecret, resourcesv1alpha1.DataKeyKubeconfig),
				secretFile(tokenSecret, resourcesv1alpha1.DataKeyToken),
			},
		}})
	})
	changeContainers(obj, func(container map[string]any) {
		setNamed(container, "volumeMounts", map[string]any{"name": gardenVolume, "mountPath": GardenMountPath, "readOnly": true})
	})
	SetEnv(obj, constants.EnvGenericGardenKubeconfig, GardenMountPath+"/"+resourcesv1alpha1.DataKeyKubeconfig)
}

// MountToken makes the Pods of a workload mount the token of their ServiceAccount, unless the workload itself decides
// whether they do. Charts of extensions have automountServiceAccountToken: false in the ServiceAccount, and rely on
// Gardener's resource manager, whose webhook (docs/concepts/resource-manager.md, "Auto-Mounting Projected ServiceAccount
// Tokens") mounts the token nevertheless.
func MountToken(obj *unstructured.Unstructured) {
	changePodSpec(obj, func(spec map[string]any) {
		account, _ := spec["serviceAccountName"].(string)
		if _, said := spec["automountServiceAccountToken"]; !said && account != "" && account != "default" {
			spec["automountServiceAccountToken"] = true
		}
	})
}

func secretFile(secret, key string) any {
	return map[string]any{"secret": map[string]any{
		"name": secret, "optional": false, "items": []any{map[string]any{"key": key, "path": key}},
	}}
}

func changePodSpec(obj *unstructured.Unstructured, change func(map[string]any)) {
	spec, ok, _ := unstructured.NestedFieldNoCopy(obj.Object, podSpecPath(obj)...)
	if fields, isMap := spec.(map[string]any); ok && isMap {
		change(fields)
	}
}

func changeContainers(obj *unstructured.Unstructured, change func(map[string]any)) {
	changePodSpec(obj, func(spec map[string]any) {
		for _, kind := range []string{"initContainers", "containers"} {
			containers, _ := spec[kind].([]any)
			for _, container := range containers {
				if fields, ok := container.(map[string]any); ok {
					change(fields)
				}
			}
		}
	})
}

// setNamed adds an item to a list of named items. It replaces an item with the same name.
func setNamed(fields map[string]any, list string, item map[string]any) {
	items, _ := fields[list].([]any)
	if i := slices.IndexFunc(items, named(item["name"])); i >= 0 {
		items[i] = item
		return
	}
	fields[list] = append(items, item)
}

func named(name any) func(any) bool {
	return func(item any) bool {
		fields, _ := item.(map[string]any)
		return fields["name"] == name
	}
}
