package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	kubeplugins "k8s.io/kubernetes/pkg/kubeapiserver/options"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
)

// Selection enables and disables admission plugins by their names, as the flags of gardener-apiserver and kube-apiserver do. It is
// about the plugins of both.
type Selection struct{ Enable, Disable []string }

// shootDNSRewriting is a plugin of Gardener that does nothing without a configuration, which there is none for here.
const shootDNSRewriting = "ShootDNSRewriting"

// Names returns the names of all plugins, Gardener's first.
func Names() []string { return append(gardenerNames(), kubeplugins.AllOrderedPlugins...) }

func gardenerNames() (names []string) {
	for _, factory := range Plugins() {
		names = append(names, factory.Name)
	}
	return names
}

// Validate returns an error that names each wrong part of a selection, by the flags.
func (s Selection) Validate() error {
	var errs []error
	names := Names()
	for _, list := range []struct {
		flag     string
		selected []string
	}{{"enable-admission-plugins", s.Enable}, {"disable-admission-plugins", s.Disable}} {
		for _, name := range list.selected {
			switch {
			case name == shootDNSRewriting && list.flag == "enable-admission-plugins":
				errs = append(errs, fmt.Errorf("--%s: %s needs a configuration, which is not supported", list.flag, name))
			case !slices.Contains(names, name) && name != shootDNSRewriting:
				errs = append(errs, fmt.Errorf("--%s: there is no plugin %q: there are those of kube-apiserver and %s", list.flag, name,
					strings.Join(gardenerNames(), ", ")))
			}
		}
	}
	for _, name := range s.Enable {
		if slices.Contains(s.Disable, name) {
			errs = append(errs, fmt.Errorf("%s is in --enable-admission-plugins and in --disable-admission-plugins", name))
		}
	}
	return errors.Join(errs...)
}

// Kubernetes returns the part of a selection that is about plugins of Kubernetes.
func (s Selection) Kubernetes() Selection {
	others := func(name string) bool { return !slices.Contains(kubeplugins.AllOrderedPlugins, name) }
	return Selection{slices.DeleteFunc(slices.Clone(s.Enable), others), slices.DeleteFunc(slices.Clone(s.Disable), others)}
}

func (s Selection) has(factory plugin.Factory) bool {
	if factory.Off {
		return slices.Contains(s.Enable, factory.Name)
	}
	return !slices.Contains(s.Disable, factory.Name)
}
