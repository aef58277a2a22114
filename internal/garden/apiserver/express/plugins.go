package express

import (
	"context"

	"k8s.io/apiserver/pkg/admission"
)

// plugins are the admission plugins that handle the creation of something, in their order. A plugin does so always or never,
// so they need not be asked each time.
type plugins struct {
	mutators   []admission.MutationInterface
	validators []admission.ValidationInterface
}

func forCreate(all []admission.Interface) (p plugins) {
	for _, plugin := range all {
		if !plugin.Handles(admission.Create) {
			continue
		}
		if mutator, ok := plugin.(admission.MutationInterface); ok {
			p.mutators = append(p.mutators, mutator)
		}
		if validator, ok := plugin.(admission.ValidationInterface); ok {
			p.validators = append(p.validators, validator)
		}
	}
	return p
}

// Handles implements admission.Interface.
func (plugins) Handles(operation admission.Operation) bool { return operation == admission.Create }

// Admit implements admission.MutationInterface. It fails if one of them wants that all are asked again.
func (p plugins) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	for _, plugin := range p.mutators {
		if err := plugin.Admit(ctx, a, o); err != nil {
			return err
		}
	}
	if a.GetReinvocationContext().ShouldReinvoke() {
		return errOtherWay
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (p plugins) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	for _, plugin := range p.validators {
		if err := plugin.Validate(ctx, a, o); err != nil {
			return err
		}
	}
	return nil
}
