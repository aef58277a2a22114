package webhooks

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

const (
	tokenVolume = "kube-api-access-gardener"
	tokenFolder = "/var/run/secrets/kubernetes.io/serviceaccount"
	tokenLife   = 12 * 60 * 60 // seconds, as in Gardener
)

// mountToken returns a JSON patch with which a Pod mounts the token of its ServiceAccount, nil if it needs none: charts of extensions
// turn the mount off in the ServiceAccount, and rely on this webhook. A ServiceAccount that mounts its token has done so before.
func mountToken(raw []byte) []byte {
	pod := &corev1.Pod{}
	if json.Unmarshal(raw, pod) != nil || pod.Spec.AutomountServiceAccountToken != nil ||
		pod.Spec.ServiceAccountName == "" || pod.Spec.ServiceAccountName == "default" {
		return nil
	}
	mounted := false
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			mounts := &containers[i].VolumeMounts
			if slices.ContainsFunc(*mounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokenFolder }) {
				mounted = true
				continue
			}
			*mounts = append(*mounts, corev1.VolumeMount{Name: tokenVolume, MountPath: tokenFolder, ReadOnly: true})
		}
	}
	if mounted {
		return nil
	}
	volumes := append(pod.Spec.Volumes, corev1.Volume{Name: tokenVolume, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: ptr.To[int64](tokenLife), Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
		}}}})
	type change struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	changes := []change{{"add", "/spec/volumes", volumes}, {"add", "/spec/containers", pod.Spec.Containers}}
	if len(pod.Spec.InitContainers) > 0 {
		changes = append(changes, change{"add", "/spec/initContainers", pod.Spec.InitContainers})
	}
	patch, err := json.Marshal(changes)
	if err != nil {
		return nil
	}
	return patch
}
