package shoot

import (
	"context"
	"fmt"
	"slices"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/component/operation"
	"github.com/gardenlite/gardenlite/internal/seed/shootsecrets"
)

// metaOf returns the metadata of an extension resource that exists once per Shoot, and has the Shoot's name.
func (b *botanist) metaOf() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: b.namespace(), Name: b.shoot.Name}
}

// credentialsRef returns the reference to the Secret with the cloud credentials for extensions.
func (b *botanist) credentialsRef() corev1.SecretReference {
	return corev1.SecretReference{Namespace: b.namespace(), Name: constants.SecretNameCloudProvider}
}

func (b *botanist) providerSpec(config *runtime.RawExtension) extensionsv1alpha1.DefaultSpec {
	return extensionsv1alpha1.DefaultSpec{Type: b.shoot.Spec.Provider.Type, ProviderConfig: config}
}

func (b *botanist) infrastructureResource() *extension {
	obj := &extensionsv1alpha1.Infrastructure{ObjectMeta: b.metaOf()}
	return &extension{kind: extensionsv1alpha1.InfrastructureResource, obj: obj, specify: func() {
		obj.Spec = extensionsv1alpha1.InfrastructureSpec{
			DefaultSpec: b.providerSpec(b.shoot.Spec.Provider.InfrastructureConfig),
			Region:      b.shoot.Spec.Region, SecretRef: b.credentialsRef(),
			SSHPublicKey: b.sshKeypair.Current[shootsecrets.KeySSHPublic],
		}
	}}
}

func (b *botanist) controlPlaneResource() *extension {
	obj := &extensionsv1alpha1.ControlPlane{ObjectMeta: b.metaOf()}
	return &extension{kind: extensionsv1alpha1.ControlPlaneResource, obj: obj, specify: func() {
		obj.Spec = extensionsv1alpha1.ControlPlaneSpec{
			DefaultSpec: b.providerSpec(b.shoot.Spec.Provider.ControlPlaneConfig),
			Region:      b.shoot.Spec.Region, SecretRef: b.credentialsRef(), InfrastructureProviderStatus: b.infrastructure,
		}
	}}
}

func (b *botanist) networkResource() *extension {
	obj := &extensionsv1alpha1.Network{ObjectMeta: b.metaOf()}
	return &extension{kind: extensionsv1alpha1.NetworkResource, obj: obj, specify: func() {
		n := b.shoot.Spec.Networking
		obj.Spec = extensionsv1alpha1.NetworkSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: ptr.Deref(n.Type, ""), ProviderConfig: n.ProviderConfig},
			PodCIDR:     ptr.Deref(n.Pods, ""), ServiceCIDR: ptr.Deref(n.Services, ""),
		}
		for _, family := range n.IPFamilies {
			obj.Spec.IPFamilies = append(obj.Spec.IPFamilies, extensionsv1alpha1.IPFamily(family))
		}
	}}
}

// hasNetwork reports whether the Shoot's pods have a network.
func (b *botanist) hasNetwork() bool {
	return !b.workerless() && b.shoot.Spec.Networking != nil && b.shoot.Spec.Networking.Type != nil
}

// waitInfrastructure waits for the Infrastructure, and copies the provider status and the networks from its status.
func (b *botanist) waitInfrastructure(ctx context.Context) error {
	e := b.infrastructureResource()
	if err := b.ready(ctx, e); err != nil {
		return err
	}
	status := e.obj.(*extensionsv1alpha1.Infrastructure).Status
	b.infrastructure = status.ProviderStatus
	networking := &corev1beta1.NetworkingStatus{EgressCIDRs: status.EgressCIDRs}
	if n := b.shoot.Spec.Networking; n != nil {
		networking.Nodes, networking.Pods, networking.Services = sliceOf(n.Nodes), sliceOf(n.Pods), sliceOf(n.Services)
	}
	if status.NodesCIDR != nil {
		networking.Nodes = []string{*status.NodesCIDR}
	}
	if n := status.Networking; n != nil {
		for to, from := range map[*[]string][]string{&networking.Nodes: n.Nodes, &networking.Pods: n.Pods, &networking.Services: n.Services} {
			if len(from) > 0 {
				*to = from
			}
		}
	}
	return b.patchShootStatus(ctx, func(shoot *corev1beta1.Shoot) { shoot.Status.Networking = networking })
}

func sliceOf(cidr *string) []string {
	if cidr == nil {
		return nil
	}
	return []string{*cidr}
}

// patchShootStatus patches the Shoot's status. It works on a copy, because other tasks read the Shoot meanwhile.
func (b *botanist) patchShootStatus(ctx context.Context, mutate func(*corev1beta1.Shoot)) error {
	shoot := b.shoot.DeepCopy()
	return operation.PatchStatus(ctx, b.GardenClient, shoot, mutate)
}

// containerRuntimes returns the container runtimes that pools want in addition to containerd.
func (b *botanist) containerRuntimes() (all []*extension) {
	for _, pool := range b.shoot.Spec.Provider.Workers {
		if pool.CRI == nil {
			continue
		}
		for _, wanted := range pool.CRI.ContainerRuntimes {
			obj := &extensionsv1alpha1.ContainerRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace(), Name: wanted.Type + "-" + pool.Name}}
			all = append(all, &extension{kind: extensionsv1alpha1.ContainerRuntimeResource, obj: obj, specify: func() {
				obj.Spec = extensionsv1alpha1.ContainerRuntimeSpec{
					DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: wanted.Type, ProviderConfig: wanted.ProviderConfig},
					BinaryPath:  extensionsv1alpha1.ContainerDRuntimeContainersBinFolder,
					WorkerPool: extensionsv1alpha1.ContainerRuntimeWorkerPool{
						Name: pool.Name, Selector: metav1.LabelSelector{MatchLabels: map[string]string{
							constants.LabelWorkerPool: pool.Name, constants.LabelWorkerPoolDeprecated: pool.Name,
						}}},
				}
			}})
		}
	}
	return all
}

// lifecycle is when Extension resources are reconciled, relative to the API server and the workers.
type lifecycle = corev1beta1.ControllerResourceLifecycleStrategy

// otherExtensions returns the Extension resources that are reconciled at one of the moments.
func (b *botanist) otherExtensions(ctx context.Context, at ...lifecycle) (all []*extension, err error) {
	registrations := &corev1beta1.ControllerRegistrationList{}
	if err := b.GardenClient.List(ctx, registrations); err != nil {
		return nil, fmt.Errorf("listing ControllerRegistrations: %w", err)
	}
	types, err := b.extensionTypes(ctx, b.shoot)
	if err != nil {
		return nil, err
	}
	for _, name := range types {
		if !slices.Contains(at, lifecycleOf(registrations, name)) {
			continue
		}
		obj := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace(), Name: name}}
		all = append(all, &extension{kind: extensionsv1alpha1.ExtensionResource, obj: obj, specify: func() {
			obj.Spec.DefaultSpec = extensionsv1alpha1.DefaultSpec{Type: name, Class: ptr.To(extensionsv1alpha1.ExtensionClassShoot)}
			for _, wanted := range b.shoot.Spec.Extensions {
				if wanted.Type == name {
					obj.Spec.ProviderConfig = wanted.ProviderConfig
				}
			}
		}})
	}
	return all, nil
}

// lifecycleOf returns when Extension resources of a type are reconciled: after the API server unless they are registered
// otherwise.
func lifecycleOf(registrations *corev1beta1.ControllerRegistrationList, name string) lifecycle {
	for _, registration := range registrations.Items {
		for _, resource := range registration.Spec.Resources {
			if resource.Kind == extensionsv1alpha1.ExtensionResource && resource.Type == name && resource.Lifecycle != nil &&
				resource.Lifecycle.Reconcile != nil {
				return *resource.Lifecycle.Reconcile
			}
		}
	}
	return corev1beta1.AfterKubeAPIServer
}

// reconcileExtensions returns a step that deploys the Extension resources of the given moments, and waits for them.
func (b *botanist) reconcileExtensions(at ...lifecycle) func(context.Context) error {
	return func(ctx context.Context) error {
		all, err := b.otherExtensions(ctx, at...)
		if err != nil {
			return err
		}
		return b.deployAndWait(ctx, all...)
	}
}

// deployAndWait deploys all, then waits for all.
func (b *botanist) deployAndWait(ctx context.Context, all ...*extension) error {
	for _, e := range all {
		if err := b.deploy(ctx, e); err != nil {
			return err
		}
	}
	for _, e := range all {
		if err := b.ready(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// deleteStale deletes the extension resources that the Shoot does not want any more.
func (b *botanist) deleteStale(ctx context.Context) error {
	wanted := map[string]bool{}
	others, err := b.otherExtensions(ctx, corev1beta1.BeforeKubeAPIServer, corev1beta1.AfterKubeAPIServer, corev1beta1.AfterWorker)
	if err != nil {
		return err
	}
	for _, e := range slices.Concat(others, b.containerRuntimes()) {
		wanted[e.kind+"/"+e.obj.GetName()] = true
	}
	kinds := []string{extensionsv1alpha1.ExtensionResource, extensionsv1alpha1.ContainerRuntimeResource}
	if !b.asleep { // no new ones replace them while the Shoot is asleep
		kinds = append(kinds, extensionsv1alpha1.OperatingSystemConfigResource)
		for _, pool := range b.pools() {
			wanted[extensionsv1alpha1.OperatingSystemConfigResource+"/"+pool.provision] = true
			wanted[extensionsv1alpha1.OperatingSystemConfigResource+"/"+pool.original] = true
		}
	}
	return b.each(ctx, func(ctx context.Context, kind string, obj extensionsv1alpha1.Object) error {
		if wanted[kind+"/"+obj.GetName()] {
			return nil
		}
		return b.destroy(ctx, kind, obj)
	}, kinds...)
}

// dnsRecord returns the record for the name of the API server, which must have an address. It returns nil if the Shoot
// names no domain, or no provider that manages its records.
func (b *botanist) dnsRecord() *extension {
	dns := b.shoot.Spec.DNS
	if dns == nil || dns.Domain == nil {
		return nil
	}
	provider := primaryProvider(dns)
	if provider == nil || provider.Type == nil || *provider.Type == unmanagedDNS {
		return nil
	}
	obj := &extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.namespace(), Name: b.shoot.Name + "-" + constants.DNSRecordExternalName,
		Labels: map[string]string{constants.LabelRole: constants.LabelDNSRecordExternal, constants.GardenRole: constants.GardenRoleControlPlane},
	}}
	return &extension{kind: extensionsv1alpha1.DNSRecordResource, obj: obj, specify: func() {
		obj.Spec = extensionsv1alpha1.DNSRecordSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: *provider.Type},
			SecretRef:   corev1.SecretReference{Namespace: b.namespace(), Name: dnsSecret(b.shoot)},
			Name:        "api." + *dns.Domain, RecordType: extensionsv1alpha1.DNSRecordTypeA, Values: []string{hostOf(b.endpoint)},
			TTL: ptr.To[int64](120),
		}
	}}
}

// primaryProvider returns the provider that manages the records of the Shoot's domain, nil if there is none.
func primaryProvider(dns *corev1beta1.DNS) *corev1beta1.DNSProvider {
	i := slices.IndexFunc(dns.Providers, func(p corev1beta1.DNSProvider) bool { return ptr.Deref(p.Primary, len(dns.Providers) == 1) })
	if i < 0 {
		return nil
	}
	return &dns.Providers[i]
}

// unmanagedDNS is the type of a provider that manages no records, as in Gardener.
const unmanagedDNS = "unmanaged"

func dnsSecret(shoot *corev1beta1.Shoot) string {
	return "dnsrecord-" + shoot.Name + "-" + constants.DNSRecordExternalName
}

// deployDNSRecord copies the credentials for the DNS provider and deploys the record, or deletes it if the Shoot has
// none.
func (b *botanist) deployDNSRecord(ctx context.Context) error {
	e := b.dnsRecord()
	if e == nil {
		return b.each(ctx, b.destroy, extensionsv1alpha1.DNSRecordResource)
	}
	if err := b.copyDNSCredentials(ctx); err != nil {
		return err
	}
	return b.deployAndWait(ctx, e)
}

func (b *botanist) copyDNSCredentials(ctx context.Context) error {
	provider := primaryProvider(b.shoot.Spec.DNS)
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: b.shoot.Namespace, Name: ptr.Deref(provider.SecretName, "")}
	if r := provider.CredentialsRef; r != nil {
		ref.APIVersion, ref.Kind, ref.Name = r.APIVersion, r.Kind, r.Name
	}
	if ref.Name == "" {
		return nil
	}
	if err := b.copyCredentials(ctx, ref, dnsSecret(b.shoot)); err != nil {
		return fmt.Errorf("copying the DNS provider's credentials: %w", err)
	}
	return nil
}
