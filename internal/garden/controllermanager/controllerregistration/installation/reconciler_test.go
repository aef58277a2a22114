package installation

import (
	"slices"
	"strings"
	"testing"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/garden/controllermanager/kit/kittest"
)

const (
	onDemand            = corev1beta1.ControllerDeploymentPolicyOnDemand
	always              = corev1beta1.ControllerDeploymentPolicyAlways
	alwaysExceptNoShoot = corev1beta1.ControllerDeploymentPolicyAlwaysExceptNoShoots
)

// registration returns a ControllerRegistration with resources in the form "Kind/type".
func registration(name string, resources ...string) *corev1beta1.ControllerRegistration {
	r := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, resource := range resources {
		kind, kindType, _ := strings.Cut(resource, "/")
		r.Spec.Resources = append(r.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: kindType})
	}
	return r
}

func with(r *corev1beta1.ControllerRegistration, change func(*corev1beta1.ControllerRegistration)) *corev1beta1.ControllerRegistration {
	change(r)
	return r
}

func withPolicy(r *corev1beta1.ControllerRegistration, policy corev1beta1.ControllerDeploymentPolicy) *corev1beta1.ControllerRegistration {
	r.Spec.Deployment = &corev1beta1.ControllerRegistrationDeployment{Policy: &policy}
	return r
}

// base returns the registration that a seed with the provider "local" needs for itself.
func base() *corev1beta1.ControllerRegistration {
	return registration("base", "ControlPlane/local", "Infrastructure/local", "Worker/local")
}

func seed(changes ...func(*corev1beta1.Seed)) *corev1beta1.Seed {
	s := &corev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "seed", Labels: map[string]string{"zone": "a"}},
		Spec:       corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Type: "local"}},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func seedInDeletion(s *corev1beta1.Seed) {
	s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: kittest.Start}, []string{"f"}
}

// shoot returns a Shoot with a worker pool, whose extensions have the type "local", except for the network.
func shoot(network string, changes ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-p", Name: "shoot"},
		Spec: corev1beta1.ShootSpec{
			SeedName:   ptr.To("seed"),
			Networking: &corev1beta1.Networking{Type: &network},
			Provider:   corev1beta1.Provider{Type: "local", Workers: []corev1beta1.Worker{{Name: "pool"}}},
		},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func shootInDeletion(s *corev1beta1.Shoot) {
	s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: kittest.Start}, []string{"f"}
}

func elsewhere(s *corev1beta1.Shoot) { s.Spec.SeedName = ptr.To("other") }

func installed(registration string, changes ...func(*corev1beta1.ControllerInstallation)) *corev1beta1.ControllerInstallation {
	i := &corev1beta1.ControllerInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: registration + "-old"},
		Spec: corev1beta1.ControllerInstallationSpec{
			RegistrationRef: corev1.ObjectReference{Name: registration, ResourceVersion: "1"},
			SeedRef:         &corev1.ObjectReference{Name: "seed", ResourceVersion: "1"},
		},
	}
	for _, change := range changes {
		change(i)
	}
	return i
}

func required(i *corev1beta1.ControllerInstallation) {
	i.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.ControllerInstallationRequired, Status: corev1beta1.ConditionTrue}}
}

// reconciled reconciles the seed and returns the names of the registrations that are installed in it afterwards.
func reconciled(t *testing.T, objects ...client.Object) (names []string, g kittest.Garden, err error) {
	t.Helper()
	g = kittest.New(t, objects...)
	r := &Reconciler{Base: g.Base()}
	_, err = g.Reconcile(reconcile.AsReconciler(g, r), seed())
	if _, second := g.Reconcile(reconcile.AsReconciler(g, r), seed()); (second == nil) != (err == nil) {
		t.Errorf("once more: %v", second)
	}
	for _, i := range installations(g) {
		if i.Spec.SeedRef.Name == "seed" {
			names = append(names, i.Spec.RegistrationRef.Name)
		}
	}
	slices.Sort(names)
	return names, g, err
}

func installations(g kittest.Garden) []corev1beta1.ControllerInstallation {
	g.Helper()
	list := &corev1beta1.ControllerInstallationList{}
	g.Must(g.List(g.Context(), list))
	return list.Items
}

// TestPolicies checks each policy in each situation, without and with an existing installation: the result must be the
// same.
func TestPolicies(t *testing.T) {
	for name, situation := range map[string]struct {
		objects []client.Object
		// want are the policies with which the network "x" is installed.
		want []corev1beta1.ControllerDeploymentPolicy
		// base is set if the registration that the seed needs for itself is installed.
		base bool
	}{
		"no shoots": {[]client.Object{seed()}, []corev1beta1.ControllerDeploymentPolicy{always}, true},
		"a shoot that needs it": {[]client.Object{seed(), shoot("x")},
			[]corev1beta1.ControllerDeploymentPolicy{onDemand, always, alwaysExceptNoShoot}, true},
		"a shoot that does not": {[]client.Object{seed(), shoot("y")},
			[]corev1beta1.ControllerDeploymentPolicy{always, alwaysExceptNoShoot}, true},
		"a shoot in another seed": {[]client.Object{seed(), shoot("x", elsewhere)},
			[]corev1beta1.ControllerDeploymentPolicy{always}, true},
		"a shoot on its way out": {
			[]client.Object{seed(), shoot("x", elsewhere, func(s *corev1beta1.Shoot) { s.Status.SeedName = ptr.To("seed") })},
			[]corev1beta1.ControllerDeploymentPolicy{onDemand, always, alwaysExceptNoShoot}, true},
		"a shoot in deletion": {[]client.Object{seed(), shoot("x", shootInDeletion)},
			[]corev1beta1.ControllerDeploymentPolicy{onDemand, always, alwaysExceptNoShoot}, true},
		"another shoot in deletion": {[]client.Object{seed(), shoot("y", shootInDeletion)},
			[]corev1beta1.ControllerDeploymentPolicy{always, alwaysExceptNoShoot}, true},
		"seed in deletion": {[]client.Object{seed(seedInDeletion)}, nil, false},
		"seed in deletion with a shoot": {[]client.Object{seed(seedInDeletion), shoot("x", shootInDeletion)},
			[]corev1beta1.ControllerDeploymentPolicy{onDemand, always, alwaysExceptNoShoot}, true},
		"seed in deletion with another": {[]client.Object{seed(seedInDeletion), shoot("y", shootInDeletion)},
			[]corev1beta1.ControllerDeploymentPolicy{alwaysExceptNoShoot}, true},
		"seed in deletion, another's shoot": {[]client.Object{seed(seedInDeletion), shoot("x", elsewhere)}, nil, false},
	} {
		for _, policy := range []corev1beta1.ControllerDeploymentPolicy{onDemand, always, alwaysExceptNoShoot} {
			for _, former := range []bool{false, true} {
				objects := append([]client.Object{
					base(), registration("y", "Network/y"), withPolicy(registration("x", "Network/x"), policy),
				}, situation.objects...)
				if former {
					objects = append(objects, installed("x"), installed("base"))
				}
				got, _, err := reconciled(t, objects...)
				if err != nil {
					t.Errorf("%s, %s: %v", name, policy, err)
				}
				if want := slices.Contains(situation.want, policy); slices.Contains(got, "x") != want ||
					slices.Contains(got, "base") != situation.base {
					t.Errorf("%s, %s, installed before: %v: installed is %v, want x: %v, base: %v", name, policy, former, got, want, situation.base)
				}
			}
		}
	}
}

func TestNeeds(t *testing.T) {
	workerless := func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers, s.Spec.Networking = nil, nil }
	withExtension := func(e corev1beta1.Extension) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) { s.Spec.Extensions = []corev1beta1.Extension{e} }
	}
	withDNS := func(dns corev1beta1.DNS) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) { s.Spec.DNS = &dns }
	}
	withSeedDNS := func(dns corev1beta1.SeedDNS) *corev1beta1.Seed {
		return seed(func(s *corev1beta1.Seed) { s.Spec.DNS = dns })
	}
	auto := func(workerless bool, clusters ...corev1beta1.ClusterType) *corev1beta1.ControllerRegistration {
		return with(registration("auto", "Extension/auto"), func(r *corev1beta1.ControllerRegistration) {
			r.Spec.Resources[0].AutoEnable, r.Spec.Resources[0].WorkerlessSupported = clusters, &workerless
		})
	}
	domainSecret := func(name, role, domain, provider, priority string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "seed-seed", Name: name, Labels: map[string]string{constants.GardenRole: role},
			Annotations: map[string]string{domainAnnotation: domain, providerAnnotation: provider, priorityAnnotation: priority},
		}}
	}
	bucket := func(seed string) *corev1beta1.BackupBucket {
		return &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket"}, Spec: corev1beta1.BackupBucketSpec{
			Provider: corev1beta1.BackupBucketProvider{Type: "b"}, SeedName: &seed,
		}}
	}
	entry := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-p", Name: "entry"}, Spec: corev1beta1.BackupEntrySpec{
		BucketName: "bucket", SeedName: ptr.To("seed"),
	}}
	backups := []client.Object{registration("buckets", "BackupBucket/b"), registration("entries", "BackupEntry/b")}
	dns := []client.Object{registration("dns-a", "DNSRecord/a"), registration("dns-b", "DNSRecord/b")}

	for name, test := range map[string]struct {
		objects []client.Object
		// want are the installed registrations except for the base and the network "x".
		want []string
	}{
		"system and runtime of a pool": {
			[]client.Object{seed(), registration("os", "OperatingSystemConfig/linux"), registration("rt", "ContainerRuntime/gvisor"),
				shoot("x", func(s *corev1beta1.Shoot) {
					s.Spec.Provider.Workers[0].Machine.Image = &corev1beta1.ShootMachineImage{Name: "linux"}
					s.Spec.Provider.Workers[0].CRI = &corev1beta1.CRI{ContainerRuntimes: []corev1beta1.ContainerRuntime{{Type: "gvisor"}}}
				})}, []string{"os", "rt"}},
		"another provider": {[]client.Object{seed(), registration("p", "ControlPlane/p", "Infrastructure/p", "Worker/p"),
			shoot("x", func(s *corev1beta1.Shoot) { s.Spec.Provider.Type = "p" })}, []string{"p"}},
		"another provider, workerless": {[]client.Object{seed(), registration("p", "ControlPlane/p", "Infrastructure/p", "Worker/p"),
			shoot("x", workerless, func(s *corev1beta1.Shoot) { s.Spec.Provider.Type = "p" })}, nil},
		"all that have the type": {[]client.Object{seed(), registration("e1", "Extension/e"),
			with(registration("e2", "Extension/e"), func(r *corev1beta1.ControllerRegistration) { r.Spec.Resources[0].Primary = ptr.To(false) }),
			shoot("x", withExtension(corev1beta1.Extension{Type: "e"}))}, []string{"e1", "e2"}},
		"disabled extension": {[]client.Object{seed(), registration("e", "Extension/e"),
			shoot("x", withExtension(corev1beta1.Extension{Type: "e", Disabled: ptr.To(true)}))}, nil},
		"extension of the seed": {[]client.Object{seed(func(s *corev1beta1.Seed) { s.Spec.Extensions = []corev1beta1.Extension{{Type: "e"}} }),
			registration("e", "Extension/e")}, []string{"e"}},

		"enabled for shoots":                {[]client.Object{seed(), auto(false, corev1beta1.ClusterTypeShoot), shoot("x")}, []string{"auto"}},
		"enabled for shoots, there is none": {[]client.Object{seed(), auto(false, corev1beta1.ClusterTypeShoot)}, nil},
		"enabled for seeds":                 {[]client.Object{seed(), auto(false, corev1beta1.ClusterTypeSeed)}, []string{"auto"}},
		"enabled for seeds, disabled in this": {[]client.Object{auto(false, corev1beta1.ClusterTypeSeed),
			seed(func(s *corev1beta1.Seed) {
				s.Spec.Extensions = []corev1beta1.Extension{{Type: "auto", Disabled: ptr.To(true)}}
			})}, nil},
		"enabled for shoots, disabled in this": {[]client.Object{seed(), auto(false, corev1beta1.ClusterTypeShoot),
			shoot("x", withExtension(corev1beta1.Extension{Type: "auto", Disabled: ptr.To(true)}))}, nil},
		"enabled for shoots, workerless": {
			[]client.Object{seed(), auto(false, corev1beta1.ClusterTypeShoot), shoot("x", workerless)}, nil},
		"enabled for shoots, workerless, supported": {
			[]client.Object{seed(), auto(true, corev1beta1.ClusterTypeShoot), shoot("x", workerless)}, []string{"auto"}},

		"bucket of the seed":        {append(backups, seed(), bucket("seed")), []string{"buckets"}},
		"bucket of another seed":    {append(backups, seed(), bucket("other")), nil},
		"entry in another's bucket": {append(backups, seed(), bucket("other"), entry), []string{"entries"}},
		"entry without bucket":      {append(backups, seed(), entry), nil},
		"shoot in a seed with backups": {append(backups, shoot("x", workerless),
			seed(func(s *corev1beta1.Seed) { s.Spec.Backup = &corev1beta1.Backup{Provider: "b"} })), []string{"buckets", "entries"}},

		"DNS of the seed": {
			append(dns, withSeedDNS(corev1beta1.SeedDNS{Provider: &corev1beta1.SeedDNSProvider{Type: "a"}})), []string{"dns-a"}},
		"internal domain": {append(dns, shoot("x"),
			withSeedDNS(corev1beta1.SeedDNS{Internal: &corev1beta1.SeedDNSProviderConfig{Type: "a", Domain: "i"}})), []string{"dns-a"}},
		"internal domain, no shoots": {
			append(dns, withSeedDNS(corev1beta1.SeedDNS{Internal: &corev1beta1.SeedDNSProviderConfig{Type: "a", Domain: "i"}})), nil},
		"internal domain of a secret": {
			append(dns, seed(), shoot("x"), domainSecret("i", constants.GardenRoleInternalDomain, "i", "a", "")), []string{"dns-a"}},
		"unmanaged internal domain": {
			append(dns, seed(), shoot("x"), domainSecret("i", constants.GardenRoleInternalDomain, "i", "unmanaged", "")), nil},
		"primary provider": {append(dns, seed(), shoot("x", withDNS(corev1beta1.DNS{Domain: ptr.To("s.d"), Providers: []corev1beta1.DNSProvider{
			{Type: ptr.To("a"), Primary: ptr.To(true)}, {Type: ptr.To("b")},
		}}))), []string{"dns-a"}},
		"unmanaged": {append(dns, seed(), shoot("x", withDNS(corev1beta1.DNS{Domain: ptr.To("s.d"),
			Providers: []corev1beta1.DNSProvider{{Type: ptr.To("unmanaged"), Primary: ptr.To(true)}}}))), nil},
		"default domain of the seed": {append(dns, shoot("x", withDNS(corev1beta1.DNS{Domain: ptr.To("s.d")})),
			withSeedDNS(corev1beta1.SeedDNS{Defaults: []corev1beta1.SeedDNSProviderConfig{{Type: "b", Domain: "e"}, {Type: "a", Domain: "d"}}})),
			[]string{"dns-a"}},
		"default domain with the highest priority": {append(dns, seed(), shoot("x", withDNS(corev1beta1.DNS{Domain: ptr.To("s.d")})),
			domainSecret("1", constants.GardenRoleDefaultDomain, "d", "b", "1"),
			domainSecret("2", constants.GardenRoleDefaultDomain, "d", "a", "10")), []string{"dns-a"}},
		"no default domain": {append(dns, seed(), shoot("x", withDNS(corev1beta1.DNS{Domain: ptr.To("s.dd")})),
			domainSecret("1", constants.GardenRoleDefaultDomain, "d", "b", "1")), nil},
	} {
		got, _, err := reconciled(t, append(slices.Clone(test.objects), base(), registration("x", "Network/x"))...)
		got = slices.DeleteFunc(got, func(name string) bool { return name == "base" || name == "x" })
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: installed %v, want %v (%v)", name, got, test.want, err)
		}
	}
}

func TestLifeOfInstallations(t *testing.T) {
	inDeletion := func(r *corev1beta1.ControllerRegistration) {
		r.DeletionTimestamp, r.Finalizers = &metav1.Time{Time: kittest.Start}, []string{"f"}
	}
	selecting := func(zone string) func(*corev1beta1.ControllerRegistration) {
		return func(r *corev1beta1.ControllerRegistration) {
			r.Spec.Deployment = &corev1beta1.ControllerRegistrationDeployment{
				Policy: ptr.To(always), SeedSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"zone": zone}},
			}
		}
	}
	x := func() *corev1beta1.ControllerRegistration { return registration("x", "Network/x") }
	for name, test := range map[string]struct {
		objects []client.Object
		want    []string
		err     string
	}{
		"required by the gardenlet":               {[]client.Object{x(), installed("x", required)}, []string{"x"}, ""},
		"not required any more":                   {[]client.Object{x(), installed("x")}, nil, ""},
		"required, but not for this seed":         {[]client.Object{with(x(), selecting("b")), installed("x", required)}, nil, ""},
		"selected":                                {[]client.Object{with(x(), selecting("a"))}, []string{"x"}, ""},
		"not selected":                            {[]client.Object{with(x(), selecting("b"))}, nil, ""},
		"registration in deletion, Always":        {[]client.Object{with(withPolicy(x(), always), inDeletion), installed("x")}, nil, ""},
		"registration in deletion, needed":        {[]client.Object{with(x(), inDeletion), shoot("x"), installed("x")}, []string{"x"}, ""},
		"registration in deletion, not installed": {[]client.Object{with(x(), inDeletion), shoot("x")}, nil, ""},
		"no registration":                         {[]client.Object{shoot("x")}, nil, "Network/x"},
		"registration of an installation is gone": {[]client.Object{installed("x")}, []string{"x"}, `"x"`},
		"two internal domains": {[]client.Object{
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "seed-seed", Name: "1",
				Labels:      map[string]string{constants.GardenRole: constants.GardenRoleInternalDomain},
				Annotations: map[string]string{domainAnnotation: "d", providerAnnotation: "p"}}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "seed-seed", Name: "2",
				Labels:      map[string]string{constants.GardenRole: constants.GardenRoleInternalDomain},
				Annotations: map[string]string{domainAnnotation: "d", providerAnnotation: "p"}}},
		}, nil, "internal domain"},
		"deployment is missing": {[]client.Object{with(withPolicy(x(), always), func(r *corev1beta1.ControllerRegistration) {
			r.Spec.Deployment.DeploymentRefs = []corev1beta1.DeploymentRef{{Name: "d"}}
		})}, nil, `ControllerDeployment "d"`},
		"old one is still being deleted": {[]client.Object{withPolicy(x(), always), installed("x", func(i *corev1beta1.ControllerInstallation) {
			i.DeletionTimestamp, i.Finalizers = &metav1.Time{Time: kittest.Start}, []string{"f"}
		})}, []string{"x"}, "still being deleted"},
		"another seed's": {[]client.Object{
			x(), installed("x", func(i *corev1beta1.ControllerInstallation) { i.Spec.SeedRef.Name = "other" })}, nil, ""},
	} {
		got, g, err := reconciled(t, append(slices.Clone(test.objects), base(), seed())...)
		got = slices.DeleteFunc(got, func(name string) bool { return name == "base" })
		if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) || !slices.Equal(got, test.want) {
			t.Errorf("%s: installed %v, want %v; error %v, want %q", name, got, test.want, err, test.err)
		}
		if name == "another seed's" && len(installations(g)) != 2 {
			t.Errorf("%s: %v", name, installations(g))
		}
	}
}

func TestInstallation(t *testing.T) {
	x := with(withPolicy(registration("x", "Network/x"), always), func(r *corev1beta1.ControllerRegistration) {
		r.Annotations = map[string]string{constants.AnnotationPodSecurityEnforce: "baseline"}
		r.Spec.Deployment.DeploymentRefs = []corev1beta1.DeploymentRef{{Name: "d"}}
	})
	resource := gardencorev1.NamedResourceReference{Name: "r"}
	resource.ResourceRef.Kind, resource.ResourceRef.Name, resource.ResourceRef.APIVersion = "Secret", "s", "v1"
	deployment := &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d"},
		Resources: []gardencorev1.NamedResourceReference{resource}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "s"}}
	_, g, err := reconciled(t, seed(), base(), x, deployment, secret)
	g.Must(err)
	ofX := func() corev1beta1.ControllerInstallation {
		all := slices.DeleteFunc(installations(g), func(i corev1beta1.ControllerInstallation) bool { return i.Spec.RegistrationRef.Name != "x" })
		if len(all) != 1 {
			t.Fatalf("%d installations of x", len(all))
		}
		return all[0]
	}
	first := ofX()
	if !strings.HasPrefix(first.Name, "x-") || first.Annotations[constants.AnnotationPodSecurityEnforce] != "baseline" {
		t.Errorf("%+v", first.ObjectMeta)
	}
	for _, label := range []string{seedSpecHash, registrationSpecHash, deploymentHash} {
		if len(first.Labels[label]) != 16 {
			t.Errorf("label %s: %q", label, first.Labels[label])
		}
	}
	current := func() corev1beta1.ControllerInstallationSpec {
		s := seed()
		for _, obj := range []client.Object{s, x, deployment, secret} {
			g.Exists(obj)
		}
		return corev1beta1.ControllerInstallationSpec{
			RegistrationRef: corev1.ObjectReference{Name: "x", ResourceVersion: x.ResourceVersion},
			SeedRef:         &corev1.ObjectReference{Name: "seed", ResourceVersion: s.ResourceVersion},
			DeploymentRef:   &corev1.ObjectReference{Name: "d", ResourceVersion: deployment.ResourceVersion},
			ResourceRefs:    []corev1.ObjectReference{{Kind: "Secret", Namespace: "garden", Name: "s", ResourceVersion: secret.ResourceVersion}},
		}
	}
	compare := func(when string, got corev1beta1.ControllerInstallation) {
		t.Helper()
		if want := current(); *got.Spec.SeedRef != *want.SeedRef || got.Spec.RegistrationRef != want.RegistrationRef ||
			*got.Spec.DeploymentRef != *want.DeploymentRef || !slices.Equal(got.Spec.ResourceRefs, want.ResourceRefs) {
			t.Errorf("%s: %+v, want %+v", when, got.Spec, want)
		}
	}
	compare("made", first)

	// If the objects that the installation derives from change, it is updated in place.
	delete(x.Annotations, constants.AnnotationPodSecurityEnforce)
	x.Spec.Resources[0].Primary = ptr.To(true)
	deployment.Helm = &gardencorev1.HelmControllerDeployment{RawChart: []byte("chart")}
	secret.Data = map[string][]byte{"k": []byte("v")}
	for _, obj := range []client.Object{x, deployment, secret} {
		g.Must(g.Update(g.Context(), obj))
	}
	_, err = g.Reconcile(reconcile.AsReconciler(g, &Reconciler{Base: g.Base()}), seed())
	g.Must(err)
	second := ofX()
	compare("changed", second)
	if _, ok := second.Annotations[constants.AnnotationPodSecurityEnforce]; ok || second.Name != first.Name {
		t.Errorf("%+v", second.ObjectMeta)
	}
	for label, changes := range map[string]bool{seedSpecHash: false, registrationSpecHash: true, deploymentHash: true} {
		if (first.Labels[label] != second.Labels[label]) != changes {
			t.Errorf("label %s: %q, %q", label, first.Labels[label], second.Labels[label])
		}
	}
	r := reconcile.AsReconciler(g, &Reconciler{Base: g.Base()})
	if _, err := g.Reconcile(r, seed()); err != nil || ofX().ResourceVersion != second.ResourceVersion {
		t.Errorf("written again for nothing (%v)", err)
	}
}
