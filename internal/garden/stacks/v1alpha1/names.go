package v1alpha1

import (
	"errors"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
)

// The namespaces of Kubernetes and of the landscape, and the names of ServiceAccounts that other parts of a garden
// know. In seed-NAME, for example, the ServiceAccounts extension-… are the extensions of a seed. The policies of the
// Stack Manager have the same patterns.
var (
	reservedNamespaces = regexp.MustCompile(`^(garden|(gardener-system|kube|seed)-.*)$`)
	reservedNames      = regexp.MustCompile(`^(default|garden(er|let|lite)|(extension|garden(er|let|lite)|kube|system)-.*)$`)
)

// CheckPlace returns an error if no stack can be installed in the namespace, or with the name. The name is also that of
// the stack's ServiceAccount.
func CheckPlace(namespace, name string) error {
	switch problems := validation.IsDNS1123Label(name); {
	case reservedNamespaces.MatchString(namespace):
		return fmt.Errorf("no stack can be installed in the namespace %s: garden, gardener-system-*, kube-* and seed-* "+
			"are those of Kubernetes and the landscape; choose another one", namespace)
	case name == "":
		return errors.New("the stack has no name")
	case len(problems) > 0:
		return fmt.Errorf("the name %s cannot be that of a stack: %s", name, problems[0])
	case reservedNames.MatchString(name):
		return fmt.Errorf("the name %s cannot be that of a stack, which its ServiceAccount has, too: default, gardener, "+
			"gardenlet, gardenlite, and what begins with one of these three and a hyphen, extension-, kube- or system- "+
			"have a meaning of their own; choose another one", name)
	}
	return nil
}
