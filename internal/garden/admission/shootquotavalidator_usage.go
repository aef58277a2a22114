package admission

import (
	"context"
	"fmt"
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"github.com/gardener/gardener/pkg/apis/security"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/garden/admission/cloudprofile"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// quotasOf returns the quotas of the binding that the Shoot uses.
func quotasOf(ctx context.Context, r plugin.Reader, shoot *gardencore.Shoot) ([]*gardencore.Quota, error) {
	var (
		refs []corev1.ObjectReference
		path = field.NewPath("spec", "secretBindingName")
	)
	secretBinding, err := shootcommon.SecretBinding(ctx, r, shoot)
	if err != nil {
		return nil, err
	}
	if secretBinding != nil {
		refs = secretBinding.Quotas
	} else {
		path = field.NewPath("spec", "credentialsBindingName")
		credentialsBinding, err := shootcommon.CredentialsBinding(ctx, r, shoot)
		if err != nil {
			return nil, err
		}
		if credentialsBinding != nil {
			refs = credentialsBinding.Quotas
		}
	}
	var quotas []*gardencore.Quota
	for _, ref := range refs {
		quota, err := plugin.Get[*gardencore.Quota](ctx, r, gardencore.Resource("quotas"), ref.Namespace, ref.Name)
		switch {
		case apierrors.IsNotFound(err):
			return nil, field.Forbidden(path, fmt.Sprintf("the binding refers to the Quota %s/%s, which does not exist", ref.Namespace, ref.Name))
		case err != nil:
			return nil, fmt.Errorf("reading the Quota %s/%s of the Shoot's binding: %v", ref.Namespace, ref.Name, err)
		}
		quotas = append(quotas, quota)
	}
	return quotas, nil
}

// exceededMetrics returns the metrics whose limit the Shoot and the other Shoots of the quota would exceed.
func exceededMetrics(ctx context.Context, r plugin.Reader, quota *gardencore.Quota, shoot *gardencore.Shoot) ([]string, error) {
	others, err := othersBelow(ctx, r, quota, shoot)
	if err != nil {
		return nil, err
	}
	used := corev1.ResourceList{}
	for _, s := range append(others, shoot) {
		if err := addNeeds(ctx, r, used, s); err != nil {
			return nil, fmt.Errorf("counting what Shoot %s/%s uses: %w", s.Namespace, s.Name, err)
		}
	}
	var exceeded []string
	for _, metric := range validation.QuotaMetrics {
		limit, limited := quota.Spec.Metrics[metric]
		if limited && limit.Cmp(used[metric]) < 0 {
			exceeded = append(exceeded, metric.String())
		}
	}
	return exceeded, nil
}

// othersBelow returns the other Shoots that use a binding with the quota: those of the Shoot's namespace if the scope
// of the quota is Project, else those of all namespaces.
func othersBelow(ctx context.Context, r plugin.Reader, quota *gardencore.Quota, shoot *gardencore.Shoot) ([]*gardencore.Shoot, error) {
	namespace := ""
	if quota.Spec.Scope.Kind == "Project" {
		namespace = shoot.Namespace
	}
	refers := func(refs []corev1.ObjectReference) bool {
		return slices.ContainsFunc(refs, func(ref corev1.ObjectReference) bool {
			return ref.Name == quota.Name && ref.Namespace == quota.Namespace
		})
	}
	viaSecret, viaCredentials := sets.New[types.NamespacedName](), sets.New[types.NamespacedName]()
	secret, err := plugin.List[*gardencore.SecretBinding](ctx, r, gardencore.Resource("secretbindings"), namespace, nil)
	if err != nil {
		return nil, fmt.Errorf("listing SecretBindings: %v", err)
	}
	for _, binding := range secret {
		if refers(binding.Quotas) {
			viaSecret.Insert(types.NamespacedName{Namespace: binding.Namespace, Name: binding.Name})
		}
	}
	credentials, err := plugin.List[*security.CredentialsBinding](ctx, r, security.Resource("credentialsbindings"), namespace, nil)
	if err != nil {
		return nil, fmt.Errorf("listing CredentialsBindings: %v", err)
	}
	for _, binding := range credentials {
		if refers(binding.Quotas) {
			viaCredentials.Insert(types.NamespacedName{Namespace: binding.Namespace, Name: binding.Name})
		}
	}
	shoots, err := plugin.List[*gardencore.Shoot](ctx, r, gardencore.Resource("shoots"), namespace, nil)
	if err != nil {
		return nil, fmt.Errorf("listing Shoots: %v", err)
	}
	var others []*gardencore.Shoot
	for _, s := range shoots {
		uses := func(bindings sets.Set[types.NamespacedName], name *string) bool {
			return bindings.Has(types.NamespacedName{Namespace: s.Namespace, Name: ptr.Deref(name, "")})
		}
		if (s.Namespace != shoot.Namespace || s.Name != shoot.Name) &&
			(uses(viaSecret, s.Spec.SecretBindingName) || uses(viaCredentials, s.Spec.CredentialsBindingName)) {
			others = append(others, s)
		}
	}
	return others, nil
}

// addNeeds adds the resources that the Shoot uses when all its worker pools are at their maximum.
func addNeeds(ctx context.Context, r plugin.Reader, to corev1.ResourceList, shoot *gardencore.Shoot) error {
	profile, err := cloudprofile.Spec(ctx, r, shoot)
	if err != nil {
		return err
	}
	if profile == nil {
		return field.Required(field.NewPath("spec", "cloudProfile"), "without it, quotas cannot be checked")
	}
	for i := range shoot.Spec.Provider.Workers {
		if err := addWorkerNeeds(to, &shoot.Spec.Provider.Workers[i], profile,
			field.NewPath("spec", "provider", "workers").Index(i)); err != nil {
			return err
		}
	}
	loadBalancers := int64(1)
	if validation.NginxIngressEnabled(shoot.Spec.Addons) {
		loadBalancers++
	}
	addQuantity(to, gardencore.QuotaMetricLoadbalancer, *resource.NewQuantity(loadBalancers, resource.DecimalSI), 1)
	return nil
}

func addWorkerNeeds(to corev1.ResourceList, worker *gardencore.Worker, profile *gardencore.CloudProfileSpec, path *field.Path) error {
	machine := cloudprofile.MachineType(profile.MachineTypes, worker.Machine.Type)
	if machine == nil {
		return field.Invalid(path.Child("machine", "type"), worker.Machine.Type,
			"the cloud profile has no such machine type, so quotas cannot be checked")
	}
	class, size, err := storageNeeds(worker, machine, profile, path.Child("volume"))
	if err != nil {
		return err
	}
	addQuantity(to, gardencore.QuotaMetricCPU, machine.CPU, worker.Maximum)
	addQuantity(to, gardencore.QuotaMetricGPU, machine.GPU, worker.Maximum)
	addQuantity(to, gardencore.QuotaMetricMemory, machine.Memory, worker.Maximum)
	metric := gardencore.QuotaMetricStorageStandard
	if class == gardencore.VolumeClassPremium {
		metric = gardencore.QuotaMetricStoragePremium
	}
	addQuantity(to, metric, size, worker.Maximum)
	return nil
}

// storageNeeds returns the class and size of the volume of each machine of a pool: those of the pool, or else those of the
// machine type.
func storageNeeds(worker *gardencore.Worker, machine *gardencore.MachineType, profile *gardencore.CloudProfileSpec,
	path *field.Path) (string, resource.Quantity, error) {
	var (
		class string
		size  resource.Quantity
	)
	switch volume := worker.Volume; {
	case volume != nil:
		if machine.Storage != nil {
			class = machine.Storage.Class
		} else if t := cloudprofile.VolumeType(profile.VolumeTypes, ptr.Deref(volume.Type, "")); t != nil {
			class = t.Class
		}
		var err error
		if size, err = resource.ParseQuantity(volume.VolumeSize); err != nil {
			return "", size, field.Invalid(path.Child("size"), volume.VolumeSize, "must be a quantity")
		}
	case machine.Storage != nil && machine.Storage.StorageSize != nil:
		class, size = machine.Storage.Class, *machine.Storage.StorageSize
	default:
		return "", size, field.Required(path, fmt.Sprintf("machine type %q comes without storage, so quotas cannot be checked", machine.Name))
	}
	if class != gardencore.VolumeClassStandard && class != gardencore.VolumeClassPremium {
		return "", size, field.Invalid(path.Child("type"), class, "must be of one of the classes that quotas know: standard, premium")
	}
	return class, size, nil
}

func addQuantity(to corev1.ResourceList, metric corev1.ResourceName, quantity resource.Quantity, times int32) {
	quantity = quantity.DeepCopy()
	quantity.Mul(int64(max(times, 0)))
	sum := to[metric].DeepCopy()
	sum.Add(quantity)
	to[metric] = sum
}
