package admission

import (
	"context"
	"testing"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/security"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

func TestValidateBackupBucket(t *testing.T) {
	p := backupBucketPlugin.New(plugin.Dependencies{Reader: plugintest.Reader{Objects: map[schema.GroupResource][]runtime.Object{
		security.Resource("workloadidentities"): {&security.WorkloadIdentity{ObjectMeta: metav1.ObjectMeta{Name: "wi", Namespace: "garden"},
			Spec: security.WorkloadIdentitySpec{TargetSystem: security.TargetSystem{Type: "aws"}}}},
	}}})
	identity := &corev1.ObjectReference{APIVersion: "security.gardener.cloud/v1alpha1", Kind: "WorkloadIdentity",
		Namespace: "garden", Name: "wi"}
	for name, test := range map[string]struct {
		ref         *corev1.ObjectReference
		provider    string
		subresource string
		forbidden   bool
	}{
		"no credentials": {nil, "gcp", "", false},
		"same type":      {identity, "aws", "", false},
		"other type":     {identity, "gcp", "", true},
		"status":         {identity, "gcp", "status", false},
	} {
		for _, op := range []admission.Operation{admission.Create, admission.Update} {
			t.Run(name+" "+string(op), func(t *testing.T) {
				bucket := &gardencore.BackupBucket{
					Spec: gardencore.BackupBucketSpec{Provider: gardencore.BackupBucketProvider{Type: test.provider}, CredentialsRef: test.ref}}
				err := p.(admission.ValidationInterface).Validate(context.Background(),
					admission.NewAttributesRecord(bucket, &gardencore.BackupBucket{}, gardencore.Kind("BackupBucket").WithVersion("v1beta1"), "",
						"b", gardencore.Resource("backupbuckets").WithVersion("v1beta1"), test.subresource, op, nil, false, nil), nil)
				if apierrors.IsForbidden(err) != test.forbidden || !test.forbidden && err != nil {
					t.Errorf("got %v, want forbidden: %v", err, test.forbidden)
				}
			})
		}
	}
}
