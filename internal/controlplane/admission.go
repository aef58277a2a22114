package controlplane

import (
	"context"
	"sync"

	"k8s.io/apiserver/pkg/admission"
)

// uncounted are the plugins of an admission chain without the metrics of each, which cost more than most plugins do.
type uncounted struct {
	plugins []admission.Interface
	// able are those that handle an operation (*able). A plugin does so always or never.
	able sync.Map
}

// able are the plugins that handle an operation, in their order.
type able struct {
	mutators   []admission.MutationInterface
	validators []admission.ValidationInterface
}

// Decorate implements admission.Decorator: it leaves a plugin as it is, and takes note of it.
func (u *uncounted) Decorate(plugin admission.Interface, _ string) admission.Interface {
	u.plugins = append(u.plugins, plugin)
	return plugin
}

// Handles implements admission.Interface.
func (u *uncounted) Handles(operation admission.Operation) bool {
	able := u.of(operation)
	return len(able.mutators)+len(able.validators) > 0
}

// of returns the plugins for an operation.
func (u *uncounted) of(operation admission.Operation) *able {
	if known, ok := u.able.Load(operation); ok {
		return known.(*able)
	}
	is := &able{}
	for _, plugin := range u.plugins {
		if !plugin.Handles(operation) {
			continue
		}
		if mutator, ok := plugin.(admission.MutationInterface); ok {
			is.mutators = append(is.mutators, mutator)
		}
		if validator, ok := plugin.(admission.ValidationInterface); ok {
			is.validators = append(is.validators, validator)
		}
	}
	u.able.Store(operation, is)
	return is
}

// Admit implements admission.MutationInterface. As in a chain of Kubernetes, all are asked again if one of them wants that.
func (u *uncounted) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	mutators := u.of(a.GetOperation()).mutators
	admit := func() error {
		for _, plugin := range mutators {
			if err := plugin.Admit(ctx, a, o); err != nil {
				return err
			}
		}
		return nil
	}
	if err := admit(); err != nil {
		return err
	}
	again := a.GetReinvocationContext()
	if !again.ShouldReinvoke() {
		return nil
	}
	again.SetIsReinvoke()
	return admit()
}

// Validate implements admission.ValidationInterface.
func (u *uncounted) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	for _, plugin := range u.of(a.GetOperation()).validators {
		if err := plugin.Validate(ctx, a, o); err != nil {
			return err
		}
	}
	return nil
}
