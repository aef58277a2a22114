package admission

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/seedcommon"
)

// backupBucketPlugin is the admission plugin BackupBucketValidator, which requires the credentials of a BackupBucket
// to have the type of its provider.
var backupBucketPlugin = plugin.Factory{
	Name:       "BackupBucketValidator",
	Operations: plugin.OnCreateOrUpdate,
	Validate:   plugin.ForKind(gardencore.Kind("BackupBucket"), validateBackupBucket),
}

func validateBackupBucket(ctx context.Context, deps plugin.Dependencies, _ admission.Attributes, bucket, _ *gardencore.BackupBucket) error {
	return seedcommon.ValidateCredentialsType(ctx, deps.Reader, bucket.Spec.CredentialsRef, bucket.Spec.Provider.Type,
		field.NewPath("spec", "credentialsRef"))
}
