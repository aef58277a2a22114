package extensionclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// annotation marks what Install made, so that it replaces nothing else.
const annotation = "gardenlite.dev/extension-install"

// pollInterval is the period in which Wait and Uninstall read installations.
const pollInterval = 100 * time.Millisecond

// Client manages the extensions of a garden.
type Client struct {
	client.Client
	// Seed returns the client configuration of an administrator of a seed.
	Seed func(ctx context.Context, seed string) (*rest.Config, error)
}

// New creates a client for the garden of a client configuration. It sends no request.
func New(config *rest.Config, seed func(context.Context, string) (*rest.Config, error)) (*Client, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(gardencorev1.AddToScheme, corev1beta1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client for the garden: %w", err)
	}
	return &Client{c, seed}, nil
}

// Type is a kind of extension resources, and the type for which an extension is responsible.
type Type struct{ Kind, Type string }

func (t Type) String() string { return t.Kind + "/" + t.Type }

// ParseType parses KIND/TYPE.
func ParseType(text string) (Type, error) {
	kind, name, _ := strings.Cut(text, "/")
	if !extensionsv1alpha1.AllExtensionKinds.Has(kind) || name == "" || strings.Contains(name, "/") {
		return Type{}, fmt.Errorf("%q: say KIND/TYPE, with one of the kinds %s", text, strings.Join(Kinds(), ", "))
	}
	return Type{kind, name}, nil
}

// Kinds returns the kinds of extension resources, sorted.
func Kinds() []string {
	return slices.Sorted(slices.Values(extensionsv1alpha1.AllExtensionKinds.UnsortedList()))
}

// Spec says how an extension is installed.
type Spec struct {
	Name  string
	Helm  *gardencorev1.HelmControllerDeployment
	Types []Type
	// OnDemand installs it only in seeds that need it.
	OnDemand bool
	// InjectGardenKubeconfig gives its workloads access to the garden.
	InjectGardenKubeconfig bool
}

// Install creates or changes an extension. It refuses to change one that it did not make.
func (c *Client) Install(ctx context.Context, s Spec) error {
	deployment := &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: s.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, c.Client, deployment, func() error {
		if err := take("ControllerDeployment", deployment); err != nil {
			return err
		}
		values := s.Helm.DeepCopy()
		if deployment.Helm != nil {
			values.Values = deployment.Helm.Values // they may have been edited
		}
		deployment.Helm, deployment.InjectGardenKubeconfig = values, ptr.To(s.InjectGardenKubeconfig)
		return nil
	}); err != nil {
		return fmt.Errorf("writing the ControllerDeployment %s: %w", s.Name, err)
	}
	policy := corev1beta1.ControllerDeploymentPolicyAlways
	if s.OnDemand {
		policy = corev1beta1.ControllerDeploymentPolicyOnDemand
	}
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: s.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, c.Client, registration, func() error {
		if err := take("ControllerRegistration", registration); err != nil {
			return err
		}
		var resources []corev1beta1.ControllerResource
		for _, t := range s.Types {
			resource := corev1beta1.ControllerResource{Kind: t.Kind, Type: t.Type}
			if i := slices.IndexFunc(registration.Spec.Resources, func(r corev1beta1.ControllerResource) bool {
				return r.Kind == t.Kind && r.Type == t.Type
			}); i >= 0 {
				resource = registration.Spec.Resources[i]
			}
			resources = append(resources, resource)
		}
		registration.Spec.Resources = resources
		registration.Spec.Deployment = &corev1beta1.ControllerRegistrationDeployment{
			Policy: &policy, DeploymentRefs: []corev1beta1.DeploymentRef{{Name: s.Name}}}
		return nil
	}); err != nil {
		return fmt.Errorf("writing the ControllerRegistration %s: %w", s.Name, err)
	}
	return nil
}

// take marks an object, and returns an error if it is there without the mark.
func take(kind string, obj client.Object) error {
	if obj.GetResourceVersion() != "" && obj.GetAnnotations()[annotation] == "" {
		return fmt.Errorf("there is a %s %s already that \"gardenlite extension install\" did not make: choose another name with --as",
			kind, obj.GetName())
	}
	metav1.SetMetaDataAnnotation(obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta), annotation, "true")
	return nil
}

// Extension is an extension of the garden.
type Extension struct {
	Name          string         `json:"name"`
	Types         []string       `json:"types"`
	Installations []Installation `json:"installations"`

	onDemand bool
}

// Installation is an extension in a seed.
type Installation struct {
	Name  string `json:"name"`
	Seed  string `json:"seed"`
	Ready bool   `json:"ready"`
	// Conditions are those of the ControllerInstallation.
	Conditions []corev1beta1.Condition `json:"conditions"`
}

// Namespace returns the namespace of the installation in its seed.
func (i Installation) Namespace() string { return "extension-" + i.Name }

// Waits returns what an installation that is not ready waits for.
func (i Installation) Waits() string {
	for _, wanted := range readyConditions {
		index := slices.IndexFunc(i.Conditions, func(c corev1beta1.Condition) bool { return c.Type == wanted })
		switch {
		case index < 0:
			return fmt.Sprintf("the gardenlet of seed %s has not said whether it is %s", i.Seed, wanted)
		case i.Conditions[index].Status != corev1beta1.ConditionTrue:
			return fmt.Sprintf("in seed %s it is not %s: %s", i.Seed, wanted, i.Conditions[index].Message)
		}
	}
	return ""
}

var readyConditions = []corev1beta1.ConditionType{corev1beta1.ControllerInstallationValid, corev1beta1.ControllerInstallationInstalled,
	corev1beta1.ControllerInstallationHealthy}

// List returns all extensions, sorted by name.
func (c *Client) List(ctx context.Context) ([]Extension, error) {
	registrations, installations := &corev1beta1.ControllerRegistrationList{}, &corev1beta1.ControllerInstallationList{}
	if err := errors.Join(c.Client.List(ctx, registrations), c.Client.List(ctx, installations)); err != nil {
		return nil, fmt.Errorf("reading the extensions: %w", err)
	}
	all := make([]Extension, 0, len(registrations.Items))
	for _, registration := range registrations.Items {
		e := Extension{Name: registration.Name, Types: []string{}, Installations: []Installation{}}
		for _, resource := range registration.Spec.Resources {
			e.Types = append(e.Types, Type{resource.Kind, resource.Type}.String())
		}
		if d := registration.Spec.Deployment; d != nil {
			e.onDemand = ptr.Deref(d.Policy, corev1beta1.ControllerDeploymentPolicyOnDemand) != corev1beta1.ControllerDeploymentPolicyAlways
		}
		for _, item := range installations.Items {
			if item.Spec.RegistrationRef.Name != e.Name {
				continue
			}
			i := Installation{Name: item.Name, Seed: ptr.Deref(item.Spec.SeedRef, corev1.ObjectReference{}).Name,
				Conditions: item.Status.Conditions}
			i.Ready = i.Waits() == ""
			e.Installations = append(e.Installations, i)
		}
		all = append(all, e)
	}
	return all, nil
}

// Find returns an extension.
func (c *Client) Find(ctx context.Context, name string) (*Extension, error) {
	all, err := c.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		if e.Name == name {
			return &e, nil
		}
	}
	return nil, fmt.Errorf("there is no extension %q: see \"gardenlite extension list\"", name)
}

// Wait waits until an extension is ready in all seeds, or in those that need it. It reports what it waits for.
func (c *Client) Wait(ctx context.Context, name string, report func(string)) (*Extension, error) {
	var e *Extension
	err := c.poll(ctx, "ready", report, func(ctx context.Context) (waits string, err error) {
		if e, err = c.Find(ctx, name); err != nil {
			return "", err
		}
		if len(e.Installations) == 0 && !e.onDemand {
			return "no seed has installed it yet", nil
		}
		for _, i := range e.Installations {
			if waits := i.Waits(); waits != "" {
				return waits, nil
			}
		}
		return "", nil
	})
	return e, err
}

// poll calls what until it waits for nothing.
func (c *Client) poll(ctx context.Context, state string, report func(string), what func(context.Context) (waits string, err error)) error {
	last := ""
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		waits, err := what(ctx)
		if err == nil && waits != "" && waits != last {
			last = waits
			report(waits)
		}
		return waits == "", err
	})
	if err != nil && ctx.Err() != nil && last != "" {
		return fmt.Errorf("it is not %s: %s", state, last)
	}
	return err
}

// Uninstall deletes an extension, and waits until it is gone from all seeds. It reports what it waits for.
func (c *Client) Uninstall(ctx context.Context, name string, report func(string)) error {
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	deployment := &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for kind, obj := range map[string]client.Object{"ControllerRegistration": registration, "ControllerDeployment": deployment} {
		if err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading the %s %s: %w", kind, name, err)
		} else if err == nil && obj.GetAnnotations()[annotation] == "" {
			return fmt.Errorf("\"gardenlite extension install\" did not make the %s %s: delete it with kubectl", kind, name)
		}
	}
	if err := c.Delete(ctx, registration); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the ControllerRegistration %s: %w", name, err)
	}
	installations := &corev1beta1.ControllerInstallationList{}
	err := c.poll(ctx, "uninstalled", report, func(ctx context.Context) (string, error) {
		if err := c.Client.List(ctx, installations); err != nil {
			return "", fmt.Errorf("reading the ControllerInstallations: %w", err)
		}
		for _, i := range installations.Items {
			if i.Spec.RegistrationRef.Name == name {
				return fmt.Sprintf("ControllerInstallation %s is still there%s", i.Name, needed(&i)), nil
			}
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	if err := c.Delete(ctx, deployment); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the ControllerDeployment %s: %w", name, err)
	}
	return nil
}

// needed says by which extension resources an installation is needed.
func needed(i *corev1beta1.ControllerInstallation) string {
	for _, c := range i.Status.Conditions {
		if c.Type == corev1beta1.ControllerInstallationRequired && c.Status == corev1beta1.ConditionTrue {
			return ": " + c.Message
		}
	}
	return ""
}
