package shootclient

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/gardenlite/gardenlite/manifests"
)

// sampleFile is the manifest of the sample Shoot.
const sampleFile = "samples/shoot.yaml"

// Spec is what may differ from the sample Shoot.
type Spec struct {
	Key
	// Workers is the number of nodes; nil means as many as in the sample, 0 means no worker pools.
	Workers *int32
	// KubernetesVersion is the version of the sample if empty.
	KubernetesVersion string
	// Seed is the name of the seed. If it is empty, the scheduler chooses a seed.
	Seed string
	// Change, if set, changes the Shoot after all other fields are applied.
	Change func(*corev1beta1.Shoot)
}

// Sample returns the sample Shoot with the changes of the Spec, in a namespace.
func (s Spec) Sample(namespace string) (*corev1beta1.Shoot, error) {
	data, err := manifests.FS.ReadFile(sampleFile)
	if err != nil {
		return nil, fmt.Errorf("reading the sample: %w", err)
	}
	shoot := &corev1beta1.Shoot{}
	if err := yaml.UnmarshalStrict(data, shoot); err != nil {
		return nil, fmt.Errorf("reading the sample: %w", err)
	}
	shoot.Name, shoot.Namespace = s.Name, namespace
	if s.KubernetesVersion != "" {
		shoot.Spec.Kubernetes.Version = s.KubernetesVersion
	}
	if s.Seed != "" {
		shoot.Spec.SeedName = ptr.To(s.Seed)
	}
	switch {
	case s.Workers == nil:
	case *s.Workers == 0: // without workers, no credentials, keys, or networks but the service network are needed
		shoot.Spec.Provider.Workers, shoot.Spec.CredentialsBindingName, shoot.Spec.Maintenance = nil, nil, nil
		shoot.Spec.Networking = &corev1beta1.Networking{Services: shoot.Spec.Networking.Services}
	default:
		for i := range shoot.Spec.Provider.Workers {
			shoot.Spec.Provider.Workers[i].Minimum, shoot.Spec.Provider.Workers[i].Maximum = 0, 0
		}
		shoot.Spec.Provider.Workers[0].Minimum, shoot.Spec.Provider.Workers[0].Maximum = *s.Workers, *s.Workers
	}
	if s.Change != nil {
		s.Change(shoot)
	}
	return shoot, nil
}

// Create creates a Shoot, and the credentials that the sample refers to if its project has none. If the Shoot exists and
// matches the spec, Create returns it, and created is false. If it differs, Create returns an error.
func (c *Client) Create(ctx context.Context, spec Spec) (shoot *corev1beta1.Shoot, created bool, err error) {
	namespace, err := c.awaitNamespace(ctx, spec.Project)
	if err != nil {
		return nil, false, err
	}
	wanted, err := spec.Sample(namespace)
	if err != nil {
		return nil, false, err
	}
	if err := c.ensureBinding(ctx, wanted); err != nil {
		return nil, false, err
	}
	shoot = wanted.DeepCopy()
	err = c.Client.Create(ctx, shoot)
	if err == nil {
		return shoot, true, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return nil, false, fmt.Errorf("creating the shoot %s: %w", spec.Key, err)
	}
	if shoot, err = c.shoot(ctx, namespace, spec.Key); err != nil {
		return nil, false, err
	}
	if shoot.DeletionTimestamp != nil {
		return nil, false, fmt.Errorf("shoot %s is being deleted: wait until it is gone, or choose another name", spec.Key)
	}
	difference, err := spec.difference(wanted, shoot)
	if err != nil {
		return nil, false, err
	}
	if difference != "" {
		return nil, false, fmt.Errorf("shoot %s exists already, but %s: choose another name, or change it with \"kubectl -n %s edit shoot %s\"",
			spec.Key, difference, namespace, spec.Name)
	}
	return shoot, false, nil
}

// difference returns the first difference of a Shoot from the wanted one, or "" if there is none. It ignores fields
// that the garden adds, versions that the user did not ask for, which are updated automatically, and the maintenance,
// which the owner of the Shoot may change.
func (s Spec) difference(wanted, found *corev1beta1.Shoot) (string, error) {
	w, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&wanted.Spec)
	if err != nil {
		return "", fmt.Errorf("comparing shoots: %w", err)
	}
	f, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&found.Spec)
	if err != nil {
		return "", fmt.Errorf("comparing shoots: %w", err)
	}
	return lacks("spec", w, f, func(path string) bool {
		return path == "spec.maintenance" || path == "spec.kubernetes.version" && s.KubernetesVersion == "" ||
			path == "spec.provider.workers[0].machine.image.version"
	}), nil
}

// lacks returns the first wanted field that found does not have with the same value.
func lacks(path string, wanted, found any, ignored func(path string) bool) string {
	if ignored(path) {
		return ""
	}
	switch w := wanted.(type) {
	case map[string]any:
		f, _ := found.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if isEmpty(w[key]) && f[key] == nil {
				continue
			}
			if d := lacks(path+"."+key, w[key], f[key], ignored); d != "" {
				return d
			}
		}
		return ""
	case []any:
		f, _ := found.([]any)
		if len(f) != len(w) {
			return fmt.Sprintf("%s has %d entries, not %d", path, len(f), len(w))
		}
		for i := range w {
			if d := lacks(fmt.Sprintf("%s[%d]", path, i), w[i], f[i], ignored); d != "" {
				return d
			}
		}
		return ""
	}
	if a, b := text(wanted), text(found); a != b {
		return fmt.Sprintf("%s is %s, not %s", path, b, a)
	}
	return ""
}

func isEmpty(value any) bool { return slices.Contains([]string{"null", "{}", "[]"}, text(value)) }

// text returns a value of an unstructured object as JSON, which is always possible.
func text(value any) string {
	data, _ := json.Marshal(value)
	return string(data)
}
