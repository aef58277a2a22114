package core

import (
	"slices"
	"strings"
	"testing"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

type change = func(*gardencore.Shoot)

func shoot(changes ...change) *gardencore.Shoot {
	s := &gardencore.Shoot{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "garden-dev", Generation: 1, Annotations: map[string]string{}},
		Spec: gardencore.ShootSpec{
			CloudProfile: &gardencore.CloudProfileReference{Kind: "CloudProfile", Name: "local"},
			Provider:     gardencore.Provider{Type: "local", Workers: []gardencore.Worker{{Name: "w"}}},
			Kubernetes:   gardencore.Kubernetes{Version: "1.34.2"},
		},
		Status: gardencore.ShootStatus{LastOperation: &gardencore.LastOperation{State: gardencore.LastOperationStateSucceeded}},
	}
	for _, c := range changes {
		c(s)
	}
	return s
}

func operation(value string) change {
	return func(s *gardencore.Shoot) { s.Annotations["gardener.cloud/operation"] = value }
}

func kubernetes(version string) change {
	return func(s *gardencore.Shoot) { s.Spec.Kubernetes.Version = version }
}

func failed(s *gardencore.Shoot) { s.Status.LastOperation.State = gardencore.LastOperationStateFailed }

func unstarted(s *gardencore.Shoot) { s.Status.LastOperation = nil }

func confined(s *gardencore.Shoot) {
	s.Spec.Maintenance = &gardencore.Maintenance{ConfineSpecUpdateRollout: ptr.To(true)}
}

func noSSH(s *gardencore.Shoot) {
	s.Spec.Provider.WorkersSettings = &gardencore.WorkersSettings{SSHAccess: &gardencore.SSHAccess{Enabled: false}}
}

func inRegion(name string) change { return func(s *gardencore.Shoot) { s.Spec.Region = name } }

func hibernated(s *gardencore.Shoot) {
	s.Spec.Hibernation = &gardencore.Hibernation{Enabled: ptr.To(true)}
}

// TestShootGeneration checks which updates make a gardenlet reconcile a Shoot again, and whether the operation
// annotation stays.
func TestShootGeneration(t *testing.T) {
	for name, test := range map[string]struct {
		old, updated *gardencore.Shoot
		moves        bool
		annotation   string
	}{
		"nothing":                              {shoot(), shoot(), false, ""},
		"spec":                                 {shoot(), shoot(inRegion("new")), true, ""},
		"spec and reconcile":                   {shoot(), shoot(inRegion("new"), operation("reconcile")), true, "reconcile"},
		"spec, confined to maintenance":        {shoot(confined), shoot(confined, inRegion("new")), false, ""},
		"hibernation, confined to maintenance": {shoot(confined), shoot(confined, hibernated), true, ""},
		"reconcile":                            {shoot(), shoot(operation("reconcile")), true, ""},
		"reconcile, failed":                    {shoot(failed), shoot(failed, operation("reconcile")), false, "reconcile"},
		"reconcile, never started":             {shoot(unstarted), shoot(unstarted, operation("reconcile")), false, "reconcile"},
		"retry, failed":                        {shoot(failed), shoot(failed, operation("retry")), true, ""},
		"retry, not failed":                    {shoot(), shoot(operation("retry")), false, "retry"},
		"rotate-ssh-keypair":                   {shoot(), shoot(operation("rotate-ssh-keypair")), true, "rotate-ssh-keypair"},
		"rotate-ssh-keypair, no SSH":           {shoot(noSSH), shoot(noSSH, operation("rotate-ssh-keypair")), false, ""},
		"rotate-ca-start":                      {shoot(), shoot(operation("rotate-ca-start")), true, "rotate-ca-start"},
		"rotate-ca-start, again": {shoot(operation("rotate-ca-start")), shoot(operation("rotate-ca-start")),
			true, "rotate-ca-start"},
		"all credentials, which include some": {shoot(),
			shoot(operation("rotate-ca-start;rotate-credentials-start;maintain;rotate-ssh-keypair")), true, "rotate-credentials-start;maintain"},
		"completion, which does not": {shoot(), shoot(operation("rotate-credentials-complete;rotate-ca-start;rotate-ca-complete")),
			true, "rotate-credentials-complete;rotate-ca-start"},
		"reconcile among others":           {shoot(), shoot(operation("maintain;reconcile")), true, "maintain"},
		"rollout of workers":               {shoot(), shoot(operation("rollout-workers=w")), true, "rollout-workers=w"},
		"rotation with rollout of workers": {shoot(), shoot(operation("rotate-rollout-workers=w")), true, "rotate-rollout-workers=w"},
		"force-in-place-update":            {shoot(), shoot(operation("force-in-place-update")), false, "force-in-place-update"},
		"unknown to the strategy":          {shoot(), shoot(operation("rotate-something")), false, "rotate-something"},
		"spaces and repetitions":           {shoot(), shoot(operation(" maintain ; maintain")), false, "maintain"},
		"force deletion": {shoot(),
			shoot(func(s *gardencore.Shoot) { s.Annotations["confirmation.gardener.cloud/force-deletion"] = "true" }), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			def := shoots(clock.RealClock{})
			def.PrepareForUpdate(t.Context(), test.updated, test.old)
			if moves := def.SpecChanged(test.updated, test.old); moves != test.moves {
				t.Errorf("the generation moves: %t", moves)
			}
			if got := test.updated.Annotations["gardener.cloud/operation"]; got != test.annotation {
				t.Errorf("the annotation is %q, should be %q", got, test.annotation)
			}
		})
	}
}

func TestShootStatusMovesGeneration(t *testing.T) {
	last := func(kind gardencore.LastOperationType, state gardencore.LastOperationState) change {
		return func(s *gardencore.Shoot) {
			s.Status.LastOperation = &gardencore.LastOperation{Type: kind, State: state}
		}
	}
	rotation := func(phase gardencore.CredentialsRotationPhase, goesOn bool) change {
		return func(s *gardencore.Shoot) {
			s.Status.Credentials = &gardencore.ShootCredentials{Rotation: &gardencore.ShootCredentialsRotation{
				ETCDEncryptionKey: &gardencore.ETCDEncryptionKeyRotation{Phase: phase, AutoCompleteAfterPrepared: &goesOn}}}
		}
	}
	for name, test := range map[string]struct {
		old, updated *gardencore.Shoot
		generation   int64
	}{
		"nothing":                        {shoot(), shoot(), 1},
		"migrated":                       {shoot(), shoot(last("Migrate", "Succeeded")), 2},
		"migration given up":             {shoot(), shoot(last("Migrate", "Aborted")), 2},
		"migrating":                      {shoot(), shoot(last("Migrate", "Processing")), 1},
		"reconciled":                     {shoot(), shoot(last("Reconcile", "Succeeded")), 1},
		"key rotation goes on":           {shoot(rotation("Preparing", true)), shoot(rotation("Prepared", true)), 2},
		"key rotation has gone on":       {shoot(rotation("Prepared", true)), shoot(rotation("Prepared", true)), 1},
		"key rotation waits":             {shoot(rotation("Preparing", false)), shoot(rotation("Prepared", false)), 1},
		"key rotation appears out of it": {shoot(), shoot(rotation("Preparing", true)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			prepareShootStatus(t.Context(), test.updated, test.old)
			if test.updated.Generation != test.generation {
				t.Errorf("generation %d", test.updated.Generation)
			}
		})
	}
}

func TestCanonicalShoot(t *testing.T) {
	s := shoot(func(s *gardencore.Shoot) {
		s.Labels = map[string]string{seedLabelPrefix + "gone": "true", "own": "label", "shoot.gardener.cloud/self-hosted": "true"}
		s.Spec.SeedName, s.Status.SeedName = ptr.To("new"), ptr.To("old")
		s.Spec.Kubernetes.ClusterAutoscaler = &gardencore.ClusterAutoscaler{MaxEmptyBulkDelete: ptr.To[int32](1)}
		s.Spec.Kubernetes.KubeAPIServer = &gardencore.KubeAPIServerConfig{EnableAnonymousAuthentication: ptr.To(false)}
		s.Spec.Addons = &gardencore.Addons{KubernetesDashboard: &gardencore.KubernetesDashboard{}}
	})
	canonicalizeShoot(s)
	if len(s.Labels) != 3 || s.Labels[seedLabelPrefix+"new"] != "true" || s.Labels[seedLabelPrefix+"old"] != "true" ||
		s.Labels["own"] != "label" {
		t.Errorf("labels are %v", s.Labels)
	}
	if s.Spec.Kubernetes.ClusterAutoscaler.MaxEmptyBulkDelete != nil ||
		s.Spec.Kubernetes.KubeAPIServer.EnableAnonymousAuthentication != nil || s.Spec.Addons != nil {
		t.Errorf("what says nothing has stayed: %+v", s.Spec)
	}
	told := shoot(func(s *gardencore.Shoot) {
		s.Spec.Provider.Workers[0].ControlPlane = &gardencore.WorkerControlPlane{}
		s.Spec.Kubernetes.KubeAPIServer = &gardencore.KubeAPIServerConfig{EnableAnonymousAuthentication: ptr.To(true)}
		s.Spec.Addons = &gardencore.Addons{KubernetesDashboard: &gardencore.KubernetesDashboard{Addon: gardencore.Addon{Enabled: true}}}
	})
	canonicalizeShoot(told)
	if told.Spec.Kubernetes.KubeAPIServer.EnableAnonymousAuthentication == nil || told.Spec.Addons == nil ||
		told.Labels["shoot.gardener.cloud/self-hosted"] != "true" {
		t.Errorf("what says something has gone: %+v, %v", told.Spec, told.Labels)
	}
}

func TestCloudProfileFieldsSayTheSame(t *testing.T) {
	profile := func(name, kind, refName string) change {
		return func(s *gardencore.Shoot) {
			s.Spec.CloudProfileName, s.Spec.CloudProfile = nil, nil
			if name != "" {
				s.Spec.CloudProfileName = &name
			}
			if refName != "" {
				s.Spec.CloudProfile = &gardencore.CloudProfileReference{Kind: kind, Name: refName}
			}
		}
	}
	const kind, namespaced = "CloudProfile", "NamespacedCloudProfile"
	deleted := func(s *gardencore.Shoot) { s.DeletionTimestamp = &metav1.Time{} }
	for name, test := range map[string]struct {
		old, updated *gardencore.Shoot
		want         string // "<name> <kind of the reference>/<name of the reference>"
	}{
		"by name":                              {nil, shoot(kubernetes("1.32.0"), profile("a", "", "")), "a CloudProfile/a"},
		"by reference":                         {nil, shoot(kubernetes("1.32.0"), profile("", kind, "a")), "a CloudProfile/a"},
		"by reference without a kind":          {nil, shoot(kubernetes("1.32.0"), profile("", "", "a")), "a CloudProfile/a"},
		"both: the reference wins":             {nil, shoot(kubernetes("1.32.0"), profile("a", kind, "b")), "b CloudProfile/b"},
		"namespaced":                           {nil, shoot(kubernetes("1.32.0"), profile("a", namespaced, "b")), " NamespacedCloudProfile/b"},
		"unreadable version":                   {nil, shoot(kubernetes("?"), profile("", kind, "a")), "a CloudProfile/a"},
		"1.33: not filled in":                  {nil, shoot(kubernetes("1.33.0"), profile("", kind, "a")), " CloudProfile/a"},
		"1.33: still a reference":              {nil, shoot(kubernetes("1.33.0"), profile("a", "", "")), "a CloudProfile/a"},
		"1.33: both":                           {nil, shoot(kubernetes("1.33.0"), profile("a", kind, "b")), "b CloudProfile/b"},
		"1.34: nothing but the kind":           {nil, shoot(profile("a", "", "b")), "a CloudProfile/b"},
		"1.34: no reference":                   {nil, shoot(profile("a", "", "")), "a"},
		"1.34: the same again":                 {shoot(profile("a", kind, "a")), shoot(profile("a", kind, "a")), " CloudProfile/a"},
		"1.34: newly set":                      {shoot(profile("", kind, "a")), shoot(profile("a", kind, "a")), "a CloudProfile/a"},
		"being deleted":                        {nil, shoot(kubernetes("1.32.0"), profile("a", "", ""), deleted), "a"},
		"neither, which is for the validation": {nil, shoot(profile("", "", "")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			syncCloudProfileFields(test.old, test.updated)
			got := ptr.Deref(test.updated.Spec.CloudProfileName, "")
			if ref := test.updated.Spec.CloudProfile; ref != nil {
				got += " " + ref.Kind + "/" + ref.Name
			}
			if got != test.want {
				t.Errorf("%q, not %q", got, test.want)
			}
		})
	}
}

func TestDNSCredentialsSayTheSame(t *testing.T) {
	secret := &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "ref"}
	identity := &autoscalingv1.CrossVersionObjectReference{APIVersion: "security.gardener.cloud/v1alpha1",
		Kind: "WorkloadIdentity", Name: "wi"}
	for version, want := range map[string][]string{
		"1.34.1": {"name Secret/name", "ref Secret/ref", " WorkloadIdentity/wi", "a Secret/ref", " "},
		"1.35.0": {"name ", " Secret/ref", " WorkloadIdentity/wi", "a Secret/ref", " "},
	} {
		s := shoot(kubernetes(version), func(s *gardencore.Shoot) {
			s.Spec.DNS = &gardencore.DNS{Providers: []gardencore.DNSProvider{
				{SecretName: ptr.To("name")}, {CredentialsRef: secret}, {CredentialsRef: identity},
				{SecretName: ptr.To("a"), CredentialsRef: secret}, {}}}
		})
		syncDNSCredentials(s)
		var got []string
		for _, p := range s.Spec.DNS.Providers {
			both := ptr.Deref(p.SecretName, "") + " "
			if p.CredentialsRef != nil {
				both += p.CredentialsRef.Kind + "/" + p.CredentialsRef.Name
			}
			got = append(got, both)
		}
		if !slices.Equal(got, want) {
			t.Errorf("with Kubernetes %s: %q", version, got)
		}
	}
}

func TestBinding(t *testing.T) {
	seed := func(name string) change { return func(s *gardencore.Shoot) { s.Spec.SeedName = &name } }
	pending := func(s *gardencore.Shoot) {
		s.Status.LastOperation = &gardencore.LastOperation{Type: gardencore.LastOperationTypeCreate, State: gardencore.LastOperationStatePending}
	}
	for name, test := range map[string]struct {
		old, updated *gardencore.Shoot
		generation   int64
		waits        bool
	}{
		"scheduled":         {shoot(pending), shoot(seed("a")), 2, false},
		"to another seed":   {shoot(pending, seed("a")), shoot(seed("b")), 2, true},
		"to the same seed":  {shoot(pending, seed("a")), shoot(seed("a")), 1, true},
		"status is ignored": {shoot(unstarted, seed("a")), shoot(pending, seed("a")), 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			bindingStrategy{}.PrepareForUpdate(t.Context(), test.updated, test.old)
			if test.updated.Generation != test.generation || (test.updated.Status.LastOperation != nil) != test.waits {
				t.Errorf("generation %d, last operation %v", test.updated.Generation, test.updated.Status.LastOperation)
			}
		})
	}
}

func TestShootColumns(t *testing.T) {
	value := func(name string, s *gardencore.Shoot) any {
		for _, c := range shootColumns() {
			if c.Name == name {
				return c.Value(s)
			}
		}
		t.Fatalf("no column %s", name)
		return nil
	}
	asleep := func(s *gardencore.Shoot) { s.Status.IsHibernated = true }
	for _, test := range []struct {
		column string
		shoot  *gardencore.Shoot
		want   string
	}{
		{"CloudProfile", shoot(), "local"},
		{"CloudProfile", shoot(func(s *gardencore.Shoot) { s.Spec.CloudProfile.Kind = "NamespacedCloudProfile" }), "garden-dev/local"},
		{"Seed", shoot(), "<none>"},
		{"Hibernation", shoot(), "Awake"},
		{"Hibernation", shoot(hibernated), "Hibernating"},
		{"Hibernation", shoot(hibernated, asleep), "Hibernated"},
		{"Hibernation", shoot(asleep), "Waking Up"},
		{"Last Operation", shoot(unstarted), "<pending>"},
		{"Last Operation", shoot(func(s *gardencore.Shoot) {
			s.Status.LastOperation = &gardencore.LastOperation{Type: "Create", State: "Processing", Progress: 42}
		}), "Create Processing (42%)"},
		{"Status", shoot(), "<pending>"},
		{"Status", shoot(func(s *gardencore.Shoot) { s.Labels = map[string]string{"shoot.gardener.cloud/status": "healthy"} }), "healthy"},
		{"Purpose", shoot(), "<none>"},
		{"Gardener Version", shoot(), "<unknown>"},
		{"Nodes", shoot(func(s *gardencore.Shoot) {
			s.Status.Conditions = []gardencore.Condition{{Type: gardencore.ShootEveryNodeReady, Status: "True"}}
		}), "True"},
		{"System", shoot(), "<unknown>"},
	} {
		if got := value(test.column, test.shoot); got != test.want {
			t.Errorf("%s is %v, not %s", test.column, got, test.want)
		}
	}
}

func TestShootWarnings(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	long, recent := metav1.NewTime(now.Add(-rotationInterval-time.Hour)), metav1.NewTime(now.Add(-time.Hour))
	old := func(s *gardencore.Shoot) { s.CreationTimestamp = long }
	rotated := func(s *gardencore.Shoot) {
		s.Status.Credentials = &gardencore.ShootCredentials{Rotation: &gardencore.ShootCredentialsRotation{
			CertificateAuthorities: &gardencore.CARotation{LastInitiationTime: &recent},
			ETCDEncryptionKey:      &gardencore.ETCDEncryptionKeyRotation{LastInitiationTime: &recent},
			ServiceAccountKey:      &gardencore.ServiceAccountKeyRotation{LastInitiationTime: &recent},
			Observability:          &gardencore.ObservabilityRotation{LastInitiationTime: &recent},
			SSHKeypair:             &gardencore.ShootSSHKeypairRotation{LastInitiationTime: &recent},
		}}
	}
	fresh := func(s *gardencore.Shoot) { s.CreationTimestamp = recent }
	ipvs := func(s *gardencore.Shoot) {
		s.Spec.Kubernetes.KubeProxy = &gardencore.KubeProxyConfig{Enabled: ptr.To(true), Mode: ptr.To(gardencore.ProxyModeIPVS)}
	}
	for name, test := range map[string]struct {
		shoot, old *gardencore.Shoot
		want       []string // a part of each warning, in order
	}{
		"nothing":                    {shoot(fresh), shoot(), nil},
		"never rotated, but created": {shoot(old), nil, nil},
		"never rotated":              {shoot(old), shoot(), []string{"shoot's credentials"}},
		"rotated":                    {shoot(old, rotated), shoot(), nil},
		"ssh key pair due": {shoot(old, rotated,
			func(s *gardencore.Shoot) { s.Status.Credentials.Rotation.SSHKeypair.LastInitiationTime = &long }), shoot(),
			[]string{"SSH key pair"}},
		"ssh key pair due, no SSH": {
			shoot(old, rotated, noSSH, func(s *gardencore.Shoot) { s.Status.Credentials.Rotation.SSHKeypair = nil }), shoot(), nil},
		"completion due": {shoot(fresh, rotated, func(s *gardencore.Shoot) {
			s.Status.Credentials.Rotation.CertificateAuthorities.LastInitiationFinishedTime = &long
		}), shoot(), []string{"complete the rotation of the certificate authorities"}},
		"completed": {shoot(fresh, rotated, func(s *gardencore.Shoot) {
			ca := s.Status.Credentials.Rotation.CertificateAuthorities
			ca.LastInitiationFinishedTime, ca.LastCompletionTriggeredTime = &long, &recent
		}), shoot(), nil},
		"secret binding": {shoot(func(s *gardencore.Shoot) { s.Spec.SecretBindingName = ptr.To("b") }), nil,
			[]string{"spec.secretBindingName"}},
		"cloud profile name": {shoot(kubernetes("1.33.0"), func(s *gardencore.Shoot) { s.Spec.CloudProfileName = ptr.To("p") }),
			nil, []string{"spec.cloudProfileName"}},
		"cloud profile name, before": {
			shoot(kubernetes("1.32.0"), func(s *gardencore.Shoot) { s.Spec.CloudProfileName = ptr.To("p") }), nil, nil},
		"addons":         {shoot(func(s *gardencore.Shoot) { s.Spec.Addons = &gardencore.Addons{} }), nil, []string{"spec.addons"}},
		"IPVS":           {shoot(ipvs), nil, nil},
		"IPVS from 1.35": {shoot(ipvs, kubernetes("1.35.0")), nil, []string{"spec.kubernetes.kubeProxy.mode"}},
		"IPVS newly":     {shoot(fresh, ipvs), shoot(), []string{"spec.kubernetes.kubeProxy.mode"}},
		"operation":      {shoot(operation("rotate-etcd-encryption-key-start")), nil, []string{"rotate-etcd-encryption-key-start"}},
		"API server and DNS": {shoot(func(s *gardencore.Shoot) {
			s.Spec.Kubernetes.KubeAPIServer = &gardencore.KubeAPIServerConfig{EnableAnonymousAuthentication: ptr.To(true),
				WatchCacheSizes: &gardencore.WatchCacheSizes{Default: ptr.To[int32](1)}}
			s.Spec.DNS = &gardencore.DNS{Providers: []gardencore.DNSProvider{{}, {SecretName: ptr.To("s")}}}
		}), nil, []string{"kubeAPIServer.enableAnonymousAuthentication", "watchCacheSizes.default", "spec.dns.providers[1].secretName"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := shootWarnings(test.shoot, test.old, now)
			if !slices.EqualFunc(got, test.want, strings.Contains) {
				t.Errorf("warnings %q", got)
			}
		})
	}
}

// TestShootValidation checks that the strategy calls the validation, with more checks for a new Shoot than for an old
// one.
func TestShootValidation(t *testing.T) {
	const forceDeletionKey = "confirmation.gardener.cloud/force-deletion"
	def := shoots(clock.RealClock{})
	created := &gardencore.Shoot{}
	created.Finalizers = []string{"gardener"}
	created.Annotations = map[string]string{forceDeletionKey: "true"}
	created.Spec.Provider.Workers = []gardencore.Worker{{UpdateStrategy: ptr.To(gardencore.AutoInPlaceUpdate)}}
	fields := func(errs field.ErrorList) (list []string) {
		for _, err := range errs {
			list = append(list, err.Field)
		}
		return list
	}
	onlyNew := []string{"metadata.finalizers[0]", "spec.provider.workers[0].updateStrategy", "metadata.annotations[" + forceDeletionKey + "]"}
	onCreate, onUpdate := fields(def.Validate(created)), fields(def.ValidateUpdate(created, created))
	for _, path := range onlyNew {
		if !slices.Contains(onCreate, path) || slices.Contains(onUpdate, path) {
			t.Errorf("%s: new Shoot %v, old Shoot %v", path, onCreate, onUpdate)
		}
	}
	if !slices.Contains(onUpdate, "spec.region") {
		t.Errorf("old Shoot %v", onUpdate)
	}
	known := &gardencore.Shoot{Status: gardencore.ShootStatus{UID: "a"}}
	if got := fields(def.ValidateStatusUpdate(created, known)); !slices.Equal(got, []string{"status.uid"}) {
		t.Errorf("status %v", got)
	}
}
