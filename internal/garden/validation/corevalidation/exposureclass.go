package corevalidation

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// maxExposureHandlerLength is the maximum length of a handler. It leaves room for the other parts of the name of the
// handler's namespace, istio-ingress-handler-<handler>--<zone>.
const maxExposureHandlerLength = 34

// ValidateExposureClass checks a new exposure class.
func ValidateExposureClass(class *gardencore.ExposureClass) field.ErrorList {
	errs := apivalidation.ValidateObjectMeta(&class.ObjectMeta, false, apivalidation.NameIsDNSLabel, field.NewPath("metadata"))
	handlerPath, schedulingPath := field.NewPath("handler"), field.NewPath("scheduling")
	errs = append(errs, InvalidEach(handlerPath, class.Handler, validation.IsDNS1123Label(class.Handler))...)
	errs = append(errs, InvalidIf(len(class.Handler) > maxExposureHandlerLength, handlerPath, class.Handler,
		fmt.Sprintf("must not be longer than %d characters", maxExposureHandlerLength))...)
	if scheduling := class.Scheduling; scheduling != nil {
		errs = append(errs, Optional(scheduling.SeedSelector, schedulingPath.Child("seedSelector"), validateSeedSelector)...)
		errs = append(errs, ValidateTolerations(scheduling.Tolerations, schedulingPath.Child("tolerations"))...)
	}
	return errs
}

// ValidateExposureClassUpdate checks a changed exposure class: only the metadata may change.
func ValidateExposureClassUpdate(newClass, oldClass *gardencore.ExposureClass) field.ErrorList {
	return append(
		immutable(newClass.Handler, oldClass.Handler, field.NewPath("handler")),
		immutable(newClass.Scheduling, oldClass.Scheduling, field.NewPath("scheduling"))...,
	)
}
