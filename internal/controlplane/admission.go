package controlplane

import (
	"context"

	"k8s.io/apiserver/pkg/admission"
)

// uncounted are the plugins of an admission chain without the metrics of each, which cost more than most plugins do.
type uncounted struct{ plugins []admission.Interface }

// Decorate implements admission.Decorator: it leaves a plugin as it is, and takes note of it.
func (u *uncounted) Decorate(plugin admission.Interface, _ string) admission.Interface {
	u.plugins = append(u.plugins, plugin)
	return plugin
}

// Handles implements admission.Interface.
func (u *uncounted) Handles(operation admission.Operation) bool {
	return admission.NewChainHandler(u.plugins...).Handles(operation)
}

// Admit implements admission.MutationInterface. As in the chain itself, all are asked again if one of them wants that.
func (u *uncounted) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	chain := admission.NewChainHandler(u.plugins...)
	if err := chain.Admit(ctx, a, o); err != nil {
		return err
	}
	again := a.GetReinvocationContext()
	if !again.ShouldReinvoke() {
		return nil
	}
	again.SetIsReinvoke()
	return chain.Admit(ctx, a, o)
}

// Validate implements admission.ValidationInterface.
func (u *uncounted) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	return admission.NewChainHandler(u.plugins...).Validate(ctx, a, o)
}
