package shoot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/seed/shootsecrets"
)

// pool is a worker pool with the names that contain its hash. Another hash means new machines.
type pool struct {
	corev1beta1.Worker
	// version is the version of the pool's kubelets.
	version string
	// provision and original are the names of the pool's OperatingSystemConfigs, secret is the name of the Secret for
	// its nodes in the shoot.
	provision, original, secret string
	machineType                 *corev1beta1.MachineType
	// rollout is when a user last requested a rollout of the pool, empty if never.
	rollout string
}

func (b *botanist) pools() []pool {
	var all []pool
	for _, worker := range b.shoot.Spec.Provider.Workers {
		p := pool{Worker: worker, version: b.shoot.Spec.Kubernetes.Version, rollout: b.rollouts[worker.Name]}
		if own := worker.Kubernetes; own != nil && own.Version != nil {
			p.version = *own.Version
		}
		for i := range b.cloudProfile.Spec.MachineTypes {
			if t := &b.cloudProfile.Spec.MachineTypes[i]; t.Name == worker.Machine.Type {
				p.machineType = t
			}
		}
		hash := poolHash(p, b.kubelet(worker), rotationsOf(&b.shoot.Status))
		name := "cloud-config-" + worker.Name + "-" + hash
		p.provision, p.original, p.secret = name+"-init", name+"-original", "gardener-node-agent-"+worker.Name+"-"+hash
		all = append(all, p)
	}
	return all
}

// kubelet returns the configuration of a pool's kubelets: its own, or else the Shoot's.
func (b *botanist) kubelet(worker corev1beta1.Worker) *corev1beta1.KubeletConfig {
	if own := worker.Kubernetes; own != nil && own.Kubelet != nil {
		return own.Kubelet
	}
	return b.shoot.Spec.Kubernetes.Kubelet
}

// poolHash returns a hash of what requires new machines when it changes: settings that a running machine cannot change,
// rotations, and rollouts on request.
func poolHash(p pool, kubelet *corev1beta1.KubeletConfig, rotations corev1beta1.ShootCredentialsRotation) string {
	parts := []string{minor(p.version), p.Machine.Type}
	if image := p.Machine.Image; image != nil {
		parts = append(parts, image.Name+ptr.Deref(image.Version, ""))
	}
	if p.Volume != nil {
		parts = append(parts, p.Volume.VolumeSize, ptr.Deref(p.Volume.Type, ""))
	}
	if p.CRI != nil {
		parts = append(parts, string(p.CRI.Name))
	}
	if r := rotations.CertificateAuthorities; r != nil {
		parts = append(parts, rolledAt("ca", p.Name, r.PendingWorkersRollouts, r.LastInitiationTime)...)
	}
	if r := rotations.ServiceAccountKey; r != nil {
		parts = append(parts, rolledAt("key", p.Name, r.PendingWorkersRollouts, r.LastInitiationTime)...)
	}
	if p.rollout != "" {
		parts = append(parts, "rollout"+p.rollout)
	}
	if kubelet != nil {
		parts = append(parts, kubeletParts(kubelet)...)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])[:16]
}

// rolledAt identifies the rotation for which a pool was last rolled: the last one, or the one before if the rollout is
// pending.
func rolledAt(what, name string, pending []corev1beta1.PendingWorkersRollout, last *metav1.Time) []string {
	for _, p := range pending {
		if p.Name == name {
			last = p.LastInitiationTime
		}
	}
	if last == nil {
		return nil
	}
	return []string{what + strconv.FormatInt(last.Unix(), 10)}
}

// kubeletParts returns the settings of kubelets that require new machines when they change, as in Gardener.
func kubeletParts(kubelet *corev1beta1.KubeletConfig) (parts []string) {
	for _, part := range []any{kubelet.CPUManagerPolicy, kubelet.EvictionHard, kubelet.KubeReserved} {
		if data, err := json.Marshal(part); err == nil && string(data) != "null" {
			parts = append(parts, string(data))
		}
	}
	return parts
}

// minor returns a Kubernetes version without its patch version.
func minor(version string) string {
	v, err := semver.NewVersion(version)
	if err != nil {
		return version
	}
	return fmt.Sprintf("%d.%d", v.Major(), v.Minor())
}

// workerResource returns the Worker resource, which describes the machines.
func (b *botanist) workerResource() *extension {
	obj := &extensionsv1alpha1.Worker{ObjectMeta: b.metaOf()}
	return &extension{kind: extensionsv1alpha1.WorkerResource, obj: obj, specify: func() {
		obj.Spec = extensionsv1alpha1.WorkerSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: b.shoot.Spec.Provider.Type},
			Region:      b.shoot.Spec.Region, SecretRef: b.credentialsRef(),
			SSHPublicKey:                 b.sshKeypair.Current[shootsecrets.KeySSHPublic],
			InfrastructureProviderStatus: b.infrastructure,
		}
		for _, p := range b.pools() {
			obj.Spec.Pools = append(obj.Spec.Pools, b.workerPool(p))
		}
	}}
}

func (b *botanist) workerPool(p pool) extensionsv1alpha1.WorkerPool {
	w := extensionsv1alpha1.WorkerPool{
		Name: p.Name, Minimum: p.Minimum, Maximum: p.Maximum,
		MaxSurge: ptr.Deref(p.MaxSurge, intstr.FromInt32(0)), MaxUnavailable: ptr.Deref(p.MaxUnavailable, intstr.FromInt32(0)),
		Annotations: p.Annotations, Labels: nodeLabels(p), Taints: p.Taints, MachineType: p.Machine.Type,
		NodeAgentSecretName: ptr.To(p.secret), ProviderConfig: p.ProviderConfig,
		UserDataSecretRef: corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: b.userData[p.provision]},
			Key:                  extensionsv1alpha1.OperatingSystemConfigSecretDataKey,
		},
		KubeletDataVolumeName: p.KubeletDataVolumeName, KubernetesVersion: ptr.To(p.version), KubeletConfig: b.kubelet(p.Worker),
		Zones: p.Zones, MachineControllerManagerSettings: p.MachineControllerManagerSettings, Architecture: p.Machine.Architecture,
		Priority: p.Priority, UpdateStrategy: p.UpdateStrategy,
	}
	if image := p.Machine.Image; image != nil {
		w.MachineImage = extensionsv1alpha1.MachineImage{Name: image.Name, Version: ptr.Deref(image.Version, "")}
	}
	if v := p.Volume; v != nil {
		w.Volume = &extensionsv1alpha1.Volume{Name: v.Name, Type: v.Type, Size: v.VolumeSize, Encrypted: v.Encrypted}
	}
	for _, v := range p.DataVolumes {
		w.DataVolumes = append(
			w.DataVolumes, extensionsv1alpha1.DataVolume{Name: v.Name, Type: v.Type, Size: v.VolumeSize, Encrypted: v.Encrypted})
	}
	if t := p.machineType; t != nil {
		w.NodeTemplate = &extensionsv1alpha1.NodeTemplate{Capacity: capacity(t)}
	}
	return w
}

func capacity(t *corev1beta1.MachineType) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: t.CPU, "gpu": t.GPU, corev1.ResourceMemory: t.Memory}
}

func nodeLabels(p pool) map[string]string {
	all := labels.Merge(p.Labels, map[string]string{
		"node.kubernetes.io/role": "node", corev1.LabelArchStable: ptr.Deref(p.Machine.Architecture, constants.ArchitectureAMD64),
		constants.LabelWorkerPool: p.Name, constants.LabelWorkerPoolDeprecated: p.Name,
		constants.LabelWorkerPoolGardenerNodeAgentSecretName: p.secret,
	})
	if s := p.SystemComponents; s == nil || s.Allow {
		all[constants.LabelWorkerPoolSystemComponents] = "true"
	}
	if p.CRI != nil {
		all[extensionsv1alpha1.CRINameWorkerLabel] = string(p.CRI.Name)
		for _, runtime := range p.CRI.ContainerRuntimes {
			all[fmt.Sprintf(extensionsv1alpha1.ContainerRuntimeNameWorkerLabel, runtime.Type)] = "true"
		}
	}
	return all
}

// operatingSystemConfigs returns the OperatingSystemConfigs of all pools: one with which machines boot, and one that
// their nodes apply afterwards.
func (b *botanist) operatingSystemConfigs() ([]*extension, error) {
	var all []*extension
	for _, p := range b.pools() {
		agent := node.AgentConfig{APIServer: b.url(), CA: string(b.bundle()), SecretName: p.secret}
		files, err := node.Files(agent, b.kubeletConfig(p), b.authorizedKeys())
		if err != nil {
			return nil, fmt.Errorf("worker pool %s: %w", p.Name, err)
		}
		user, units := userFiles(), append(userUnits(), sshUnit(hasSSH(b.shoot)))
		all = append(all,
			b.osc(p, p.provision, extensionsv1alpha1.OperatingSystemConfigPurposeProvision,
				append(provisionFiles(files), user...), slices.Concat(units, agentUnit())),
			b.osc(p, p.original, extensionsv1alpha1.OperatingSystemConfigPurposeReconcile,
				append(files, user...), slices.Concat(units, node.Units())))
	}
	return all, nil
}

func (b *botanist) osc(p pool, name string, purpose extensionsv1alpha1.OperatingSystemConfigPurpose,
	files []extensionsv1alpha1.File, units []extensionsv1alpha1.Unit) *extension {
	obj := &extensionsv1alpha1.OperatingSystemConfig{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace(), Name: name}}
	return &extension{kind: extensionsv1alpha1.OperatingSystemConfigResource, obj: obj, specify: func() {
		obj.Labels = map[string]string{constants.LabelWorkerPool: p.Name}
		obj.Spec = extensionsv1alpha1.OperatingSystemConfigSpec{Purpose: purpose, Files: files, Units: units}
		if image := p.Machine.Image; image != nil {
			obj.Spec.Type, obj.Spec.ProviderConfig = image.Name, image.ProviderConfig
		}
		if p.CRI != nil {
			obj.Spec.CRIConfig = &extensionsv1alpha1.CRIConfig{Name: extensionsv1alpha1.CRIName(p.CRI.Name)}
		}
	}}
}

func (b *botanist) kubeletConfig(p pool) node.KubeletConfig {
	config := node.KubeletConfig{
		APIServer: b.url(), CA: string(b.bundle()), ClientCA: string(b.clientBundle()), KubernetesVersion: p.version,
		Labels: nodeLabels(p), Annotations: p.Annotations, Taints: p.Taints,
		Region: b.shoot.Spec.Region, InstanceType: p.Machine.Type, Architecture: ptr.Deref(p.Machine.Architecture, constants.ArchitectureAMD64),
	}
	if len(p.Zones) == 1 {
		config.Zone = p.Zones[0]
	}
	if image := p.Machine.Image; image != nil {
		config.OSImage = strings.TrimSpace(image.Name + " " + ptr.Deref(image.Version, ""))
	}
	if t := p.machineType; t != nil {
		config.Capacity = capacity(t)
		delete(config.Capacity, "gpu")
	}
	if kubelet := b.kubelet(p.Worker); kubelet != nil {
		config.MaxPods = int64(ptr.Deref(kubelet.MaxPods, 0))
		if kubelet.KubeReserved != nil {
			config.Reserved = reserved(kubelet.KubeReserved)
		}
	}
	return config
}

// reserved returns what is not for Pods of a machine's resources.
func reserved(kubelet *corev1beta1.KubeletConfigReserved) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, part := range map[corev1.ResourceName]*resource.Quantity{
		corev1.ResourceCPU: kubelet.CPU, corev1.ResourceMemory: kubelet.Memory, corev1.ResourceEphemeralStorage: kubelet.EphemeralStorage,
	} {
		if part != nil {
			list[name] = *part
		}
	}
	return list
}

// authorizedKeys returns the SSH keys that may log in to the machines: the current one, and the previous one.
func (b *botanist) authorizedKeys() (keys []string) {
	for _, pair := range []map[string][]byte{b.sshKeypair.Current, b.sshKeypair.Old} {
		if key := pair[shootsecrets.KeySSHPublic]; len(key) > 0 {
			keys = append(keys, string(key))
		}
	}
	return keys
}

// waitOperatingSystemConfigs waits for all OperatingSystemConfigs. It stores the names of the Secrets with the user
// data, and the configuration of the nodes.
func (b *botanist) waitOperatingSystemConfigs(ctx context.Context) error {
	all, err := b.operatingSystemConfigs()
	if err != nil {
		return err
	}
	userData, secrets := map[string]string{}, map[string][]byte{}
	for _, e := range all {
		if err := b.ready(ctx, e); err != nil {
			return err
		}
		osc := e.obj.(*extensionsv1alpha1.OperatingSystemConfig)
		if osc.Spec.Purpose == extensionsv1alpha1.OperatingSystemConfigPurposeReconcile {
			if secrets[osc.Name], err = node.EncodeOSC(osc); err != nil {
				return err
			}
			continue
		}
		if osc.Status.CloudConfig == nil {
			return fmt.Errorf("OperatingSystemConfig %s/%s has no user data in status.cloudConfig although its extension is done",
				osc.Namespace, osc.Name)
		}
		userData[osc.Name] = osc.Status.CloudConfig.SecretRef.Name
	}
	b.userData, b.nodeConfigs = userData, secrets
	return nil
}

func (b *botanist) deployOperatingSystemConfigs(ctx context.Context) error {
	all, err := b.operatingSystemConfigs()
	if err != nil {
		return err
	}
	for _, e := range all {
		if err := b.deploy(ctx, e); err != nil {
			return err
		}
	}
	return nil
}
