package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/seed/provider/machines"
)

// wantedDeployment is the desired MachineDeployment for one zone of a pool.
type wantedDeployment struct {
	name, pool, class, zone string
	min, max                int32
	from                    *extensionsv1alpha1.WorkerPool
	update                  machinev1alpha1.UpdateConfiguration
	userData                []byte
}

// wantedDeployments returns the desired MachineDeployments of all pools, one per zone. The numbers of a pool are spread over
// its zones as in Gardener.
func wantedDeployments(ctx context.Context, seed client.Client, worker *extensionsv1alpha1.Worker) ([]wantedDeployment, error) {
	var wanted []wantedDeployment
	for i := range worker.Spec.Pools {
		pool := &worker.Spec.Pools[i]
		userData, err := userDataOf(ctx, seed, worker, pool)
		if err != nil {
			return nil, err
		}
		zones := pool.Zones
		if len(zones) == 0 {
			zones = []string{worker.Spec.Region}
		}
		for j, zone := range zones {
			index, count := int32(j), int32(len(zones))
			name := fmt.Sprintf("%s-%s-z%d", worker.Namespace, pool.Name, j+1)
			surge, unavailable := spread(index, count, pool.Maximum, pool.MaxSurge), spread(index, count, pool.Minimum, pool.MaxUnavailable)
			wanted = append(wanted, wantedDeployment{
				name: name, pool: pool.Name, class: name + "-" + poolHash(pool), zone: zone, from: pool, userData: userData,
				min: share(index, count, pool.Minimum), max: share(index, count, pool.Maximum),
				update: machinev1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &unavailable},
			})
		}
	}
	return wanted, nil
}

func userDataOf(ctx context.Context, seed client.Client, worker *extensionsv1alpha1.Worker,
	pool *extensionsv1alpha1.WorkerPool) ([]byte, error) {
	key := client.ObjectKey{Namespace: worker.Namespace, Name: pool.UserDataSecretRef.Name}
	secret := &corev1.Secret{}
	if err := seed.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("reading the user data of pool %s in Secret %s: %w", pool.Name, key, err)
	}
	userData := secret.Data[pool.UserDataSecretRef.Key]
	if len(userData) == 0 {
		return nil, fmt.Errorf("the user data of pool %s, Secret %s, has nothing under %s", pool.Name, key, pool.UserDataSecretRef.Key)
	}
	return userData, nil
}

// share returns the part of a number for one of several zones. If it cannot be divided, the first zones get one more.
func share(index, zones, number int32) int32 {
	n := number / zones
	if index < number%zones {
		n++
	}
	return n
}

// spread returns the part of a number, or of a percentage of a total, for one of several zones.
func spread(index, zones, total int32, value intstr.IntOrString) intstr.IntOrString {
	if value.Type == intstr.Int {
		return intstr.FromInt32(share(index, zones, value.IntVal))
	}
	var percent int
	if _, err := fmt.Sscanf(value.StrVal, "%d%%", &percent); err != nil || total%zones == 0 {
		return value
	}
	ratio := float64(share(index, zones, total)) * float64(zones) / float64(total)
	return intstr.FromString(fmt.Sprintf("%d%%", int(math.Ceil(ratio*float64(percent)))))
}

// poolHash returns a hash that changes when a pool's machines have to be replaced. The gardenlet then changes the name of
// the node agent's Secret; for a pool without such a name, the hash is calculated from the same fields as in Gardener.
func poolHash(pool *extensionsv1alpha1.WorkerPool) string {
	if inPlace(pool) {
		return machines.Hash(pool.Name)
	}
	if pool.NodeAgentSecretName != nil {
		return machines.Hash(*pool.NodeAgentSecretName)
	}
	minor := ptr.Deref(pool.KubernetesVersion, "")
	if version, err := semver.NewVersion(minor); err == nil {
		minor = fmt.Sprintf("%d.%d", version.Major(), version.Minor())
	}
	parts := []string{pool.Name, minor, pool.MachineType, pool.MachineImage.Name, pool.MachineImage.Version}
	if volume := pool.Volume; volume != nil {
		parts = append(parts, volume.Size, ptr.Deref(volume.Type, ""))
	}
	return machines.Hash(strings.Join(parts, "\n"))
}

func inPlace(pool *extensionsv1alpha1.WorkerPool) bool {
	strategy := ptr.Deref(pool.UpdateStrategy, "")
	return strategy == corev1beta1.AutoInPlaceUpdate || strategy == corev1beta1.ManualInPlaceUpdate
}

func (d *wantedDeployment) classSecret(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: d.class}}
}

// fillClass sets the fields of the MachineClass.
func (d *wantedDeployment) fillClass(class *machinev1alpha1.MachineClass, worker *extensionsv1alpha1.Worker) {
	// Encoding strings cannot fail.
	spec, _ := json.Marshal(machines.ProviderSpec{Image: d.from.MachineImage.Name + ":" + d.from.MachineImage.Version})
	class.Provider = Type
	class.ProviderSpec = runtime.RawExtension{Raw: spec}
	class.SecretRef = &corev1.SecretReference{Namespace: worker.Namespace, Name: d.class}
	if ref := worker.Spec.SecretRef; ref.Name != "" {
		class.CredentialsSecretRef = &corev1.SecretReference{Namespace: ref.Namespace, Name: ref.Name}
	}
	class.NodeTemplate = &machinev1alpha1.NodeTemplate{
		Capacity: corev1.ResourceList{}, InstanceType: d.from.MachineType, Region: worker.Spec.Region, Zone: d.zone,
		Architecture: d.from.Architecture,
	}
	if template := d.from.NodeTemplate; template != nil && template.Capacity != nil {
		class.NodeTemplate.Capacity = template.Capacity
	}
}

// fillDeployment sets the fields of the MachineDeployment, with the given number of replicas.
func (d *wantedDeployment) fillDeployment(deployment *machinev1alpha1.MachineDeployment, replicas int32) {
	labels := map[string]string{machines.LabelDeployment: d.name}
	metav1.SetMetaDataLabel(&deployment.ObjectMeta, labelPool, d.pool)
	spec := &deployment.Spec
	spec.Replicas = replicas
	spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	spec.RevisionHistoryLimit = ptr.To[int32](0)
	spec.Strategy = machinev1alpha1.MachineDeploymentStrategy{
		Type:          machinev1alpha1.RollingUpdateMachineDeploymentStrategyType,
		RollingUpdate: &machinev1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: d.update},
	}
	spec.Template = machinev1alpha1.MachineTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: spec.Template.Annotations},
		Spec: machinev1alpha1.MachineSpec{
			Class: machinev1alpha1.ClassSpec{Kind: "MachineClass", Name: d.class},
			NodeTemplateSpec: machinev1alpha1.NodeTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: d.from.Labels, Annotations: d.from.Annotations},
				Spec:       corev1.NodeSpec{Taints: d.from.Taints},
			},
			MachineConfiguration: configurationOf(d.from.MachineControllerManagerSettings),
		},
	}
}

func configurationOf(settings *corev1beta1.MachineControllerManagerSettings) *machinev1alpha1.MachineConfiguration {
	if settings == nil {
		return nil
	}
	c := &machinev1alpha1.MachineConfiguration{
		MachineDrainTimeout: settings.MachineDrainTimeout, MachineHealthTimeout: settings.MachineHealthTimeout,
		MachineCreationTimeout: settings.MachineCreationTimeout, MaxEvictRetries: settings.MaxEvictRetries,
		DisableHealthTimeout: settings.DisableHealthTimeout,
	}
	if len(settings.NodeConditions) > 0 {
		c.NodeConditions = ptr.To(strings.Join(settings.NodeConditions, ","))
	}
	return c
}
