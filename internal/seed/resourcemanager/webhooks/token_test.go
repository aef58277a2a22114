package webhooks

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestMountToken checks which Pods get the token of their ServiceAccount.
func TestMountToken(t *testing.T) {
	for name, test := range map[string]struct {
		spec  corev1.PodSpec
		wants int // changes
	}{
		"its own ServiceAccount": {corev1.PodSpec{ServiceAccountName: "own"}, 2},
		"init containers":        {corev1.PodSpec{ServiceAccountName: "own", InitContainers: []corev1.Container{{Name: "i"}}}, 3},
		"the default":            {corev1.PodSpec{ServiceAccountName: "default"}, 0},
		"none":                   {corev1.PodSpec{}, 0},
		"turned off in the Pod":  {corev1.PodSpec{ServiceAccountName: "own", AutomountServiceAccountToken: ptr.To(false)}, 0},
		"mounted by the ServiceAccount": {corev1.PodSpec{ServiceAccountName: "own", Containers: []corev1.Container{
			{VolumeMounts: []corev1.VolumeMount{{Name: "x", MountPath: tokenFolder}}}}}, 0},
	} {
		if test.spec.Containers == nil {
			test.spec.Containers = []corev1.Container{{Name: "c"}}
		}
		raw, err := json.Marshal(corev1.Pod{Spec: test.spec})
		if err != nil {
			t.Fatal(err)
		}
		var changes []struct {
			Path  string
			Value json.RawMessage
		}
		if patch := mountToken(raw); patch != nil {
			if err := json.Unmarshal(patch, &changes); err != nil {
				t.Fatal(err)
			}
		}
		if len(changes) != test.wants {
			t.Errorf("%s: %d changes, want %d", name, len(changes), test.wants)
		}
		for _, change := range changes {
			var containers []corev1.Container
			if change.Path != "/spec/volumes" && (json.Unmarshal(change.Value, &containers) != nil || len(containers[0].VolumeMounts) != 1) {
				t.Errorf("%s: %s", name, change.Value)
			}
		}
	}
}
