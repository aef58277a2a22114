// Package admission is the list of the garden's in-process admission plugins, in the order in which Gardener runs them.
// Each plugin has a folder.
package admission

import (
	"fmt"

	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
)

// Plugins are the plugins that are always on.
func Plugins() []plugin.Factory {
	return []plugin.Factory{}
}

// New makes the chain of all plugins.
func New(deps plugin.Dependencies) (admission.Interface, error) {
	var chain []admission.Interface
	for _, factory := range Plugins() {
		p, err := factory.New(deps)
		if err != nil {
			return nil, fmt.Errorf("making the admission plugin %s: %w", factory.Name, err)
		}
		chain = append(chain, p)
	}
	return admission.NewChainHandler(chain...), nil
}
