// Package backupbucketvalidator contains the admission plugin BackupBucketValidator, which requires the credentials of
// a BackupBucket to have the type of its provider. It may import the plugin, request, seedcommon and shootcommon
// packages.
package backupbucketvalidator

import (
	"context"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/request"
	"github.com/gardenlite/gardenlite/internal/garden/admission/seedcommon"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
)

// Factory returns the plugin's factory.
func Factory() plugin.Factory {
	return plugin.Factory{Name: "BackupBucketValidator", New: func(deps plugin.Dependencies) (admission.Interface, error) {
		return &validator{admission.NewHandler(admission.Create, admission.Update), deps.Reader}, nil
	}}
}

type validator struct {
	*admission.Handler
	reader plugin.Reader
}

var _ admission.ValidationInterface = &validator{}

// Validate implements admission.ValidationInterface.
func (v *validator) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !request.IsForKind(a, gardencore.Kind("BackupBucket")) {
		return nil
	}
	bucket, _, err := request.Objects[gardencore.BackupBucket](a)
	if err != nil {
		return err
	}
	return shootcommon.ToAPIError(a, seedcommon.ValidateCredentialsType(ctx, v.reader, bucket.Spec.CredentialsRef,
		bucket.Spec.Provider.Type, field.NewPath("spec", "credentialsRef")))
}
