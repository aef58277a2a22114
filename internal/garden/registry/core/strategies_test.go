package core

import (
	"slices"
	"strings"
	"testing"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

var now = time.Unix(1_800_000_000, 0)

func annotated(pairs ...string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Name: "o", Annotations: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		meta.Annotations[pairs[i]] = pairs[i+1]
	}
	return meta
}

const operationKey = "gardener.cloud/operation"

// TestOperations checks which operations increase the generation of objects other than Shoots, and which annotations
// stay for the gardenlet.
func TestOperations(t *testing.T) {
	seed := func(now, before string) func() (bool, metav1.ObjectMeta) {
		return func() (bool, metav1.ObjectMeta) {
			seed, old := &gardencore.Seed{ObjectMeta: annotated(operationKey, now)}, &gardencore.Seed{ObjectMeta: annotated(operationKey, before)}
			return seedSpecChanged(seed, old), seed.ObjectMeta
		}
	}
	entry := func(now, before metav1.ObjectMeta) func() (bool, metav1.ObjectMeta) {
		return func() (bool, metav1.ObjectMeta) {
			entry := &gardencore.BackupEntry{ObjectMeta: now}
			return backupEntrySpecChanged(entry, &gardencore.BackupEntry{ObjectMeta: before}), entry.ObjectMeta
		}
	}
	bucket := func(operation string) func() (bool, metav1.ObjectMeta) {
		return func() (bool, metav1.ObjectMeta) {
			bucket := &gardencore.BackupBucket{ObjectMeta: annotated(operationKey, operation)}
			return backupBuckets().SpecChanged(bucket, &gardencore.BackupBucket{}), bucket.ObjectMeta
		}
	}
	const force = gardencore.BackupEntryForceDeletion
	for name, test := range map[string]struct {
		run         func() (bool, metav1.ObjectMeta)
		moves, left bool
	}{
		"seed: reconcile":                          {seed("reconcile", ""), true, false},
		"seed: renew-garden-access-secrets":        {seed("renew-garden-access-secrets", ""), true, true},
		"seed: renew-garden-access-secrets, still": {seed("renew-garden-access-secrets", "renew-garden-access-secrets"), false, true},
		"seed: renew-workload-identity-tokens":     {seed("renew-workload-identity-tokens", "reconcile"), true, true},
		"seed: renew-kubeconfig":                   {seed("renew-kubeconfig", ""), true, true},
		"seed: something else":                     {seed("maintain", ""), false, true},
		"backup bucket: reconcile":                 {bucket("reconcile"), true, false},
		"backup bucket: something else":            {bucket("migrate"), false, true},
		"backup entry: reconcile":                  {entry(annotated(operationKey, "reconcile"), annotated()), true, false},
		"backup entry: migrate":                    {entry(annotated(operationKey, "migrate"), annotated()), true, false},
		"backup entry: restore":                    {entry(annotated(operationKey, "restore"), annotated()), true, true},
		"backup entry: restore, still":             {entry(annotated(operationKey, "restore"), annotated(operationKey, "restore")), false, true},
		"backup entry: something else":             {entry(annotated(operationKey, "maintain"), annotated()), false, true},
		"backup entry: force deletion":             {entry(annotated(force, "true"), annotated()), true, false},
		"backup entry: force deletion, still":      {entry(annotated(force, "true"), annotated(force, "1")), false, false},
		"backup entry: force deletion, given up":   {entry(annotated(force, "false"), annotated(force, "true")), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			moves, meta := test.run()
			if _, left := meta.Annotations[operationKey]; moves != test.moves || left != test.left {
				t.Errorf("the generation moves: %t, the annotation stays: %t", moves, left)
			}
		})
	}
}

func TestControllerDeploymentGeneration(t *testing.T) {
	changed := func(d gardencore.ControllerDeployment) bool {
		return controllerDeployments().SpecChanged(&d, &gardencore.ControllerDeployment{})
	}
	if changed(gardencore.ControllerDeployment{InjectGardenKubeconfig: ptr.To(true)}) || changed(gardencore.ControllerDeployment{}) {
		t.Error("moves without reason")
	}
	if !changed(gardencore.ControllerDeployment{Type: "t"}) ||
		!changed(gardencore.ControllerDeployment{Helm: &gardencore.HelmControllerDeployment{}}) ||
		!changed(gardencore.ControllerDeployment{Resources: []gardencore.NamedResourceReference{{}}}) {
		t.Error("does not move")
	}
}

func TestProjectOwner(t *testing.T) {
	subject := func(kind, name string) rbacv1.Subject { return rbacv1.Subject{APIGroup: "g", Kind: kind, Name: name} }
	p := &gardencore.Project{Spec: gardencore.ProjectSpec{
		Owner: ptr.To(subject("User", "ann")),
		Members: []gardencore.ProjectMember{
			{Subject: subject("User", "ann"), Roles: []string{"admin"}},
			{Subject: subject("User", "bob"), Roles: []string{"owner", "viewer"}},
			{Subject: subject("Group", "ann"), Roles: []string{"viewer"}},
		},
	}}
	for range 2 {
		assignOwnerRole(p)
		for i, want := range []string{"admin owner", "viewer", "viewer"} {
			if got := strings.Join(p.Spec.Members[i].Roles, " "); got != want {
				t.Errorf("%s has the roles %s", p.Spec.Members[i].Name, got)
			}
		}
	}
	assignOwnerRole(&gardencore.Project{})
}

func TestSeedColumn(t *testing.T) {
	for name, test := range map[string]struct {
		conditions map[gardencore.ConditionType]gardencore.ConditionStatus
		want       string
	}{
		"nothing said": {nil, "NotReady"},
		"all well": {map[gardencore.ConditionType]gardencore.ConditionStatus{"GardenletReady": "True",
			"ExtensionsReady": "True", "BackupBucketsReady": "True", "SeedSystemComponentsHealthy": "Progressing"}, "Ready"},
		"without backup": {
			map[gardencore.ConditionType]gardencore.ConditionStatus{"GardenletReady": "True", "ExtensionsReady": "Progressing"}, "Ready"},
		"gardenlet lost": {
			map[gardencore.ConditionType]gardencore.ConditionStatus{"GardenletReady": "Unknown", "ExtensionsReady": "True"}, "Unknown"},
		"buckets not yet": {map[gardencore.ConditionType]gardencore.ConditionStatus{
			"GardenletReady": "True", "ExtensionsReady": "True", "BackupBucketsReady": "Progressing"}, "NotReady"},
		"extensions not known": {map[gardencore.ConditionType]gardencore.ConditionStatus{"GardenletReady": "True"}, "NotReady"},
		"system ill": {map[gardencore.ConditionType]gardencore.ConditionStatus{
			"GardenletReady": "True", "ExtensionsReady": "True", "SeedSystemComponentsHealthy": "False"}, "NotReady"},
	} {
		seed := &gardencore.Seed{}
		for kind, status := range test.conditions {
			seed.Status.Conditions = append(seed.Status.Conditions, gardencore.Condition{Type: kind, Status: status})
		}
		if got := seedStatus(seed); got != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func versions(entries ...string) (versions []gardencore.ExpirableVersion) {
	for _, entry := range entries {
		version, stage, _ := strings.Cut(entry, " ")
		v := gardencore.ExpirableVersion{Version: version}
		switch stage {
		case "expired":
			v.ExpirationDate = ptr.To(metav1.NewTime(now.Add(-time.Hour)))
		case "expiring":
			v.ExpirationDate = ptr.To(metav1.NewTime(now.Add(time.Hour)))
		case "coming":
			v.Lifecycle = []gardencore.LifecycleStage{
				{Classification: gardencore.ClassificationPreview, StartTime: ptr.To(metav1.NewTime(now.Add(time.Hour)))}}
		}
		versions = append(versions, v)
	}
	return versions
}

func images(name string, entries ...string) gardencore.MachineImage {
	image := gardencore.MachineImage{Name: name}
	for _, v := range versions(entries...) {
		image.Versions = append(image.Versions, gardencore.MachineImageVersion{ExpirableVersion: v})
	}
	return image
}

func offered(kubernetes []gardencore.ExpirableVersion, images []gardencore.MachineImage) string {
	var all []string
	for _, v := range kubernetes {
		all = append(all, v.Version)
	}
	for _, image := range images {
		all = append(all, image.Name)
		for _, v := range image.Versions {
			all = append(all, v.Version)
		}
	}
	return strings.Join(all, " ")
}

func TestUnusableVersions(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(now)
	profile := &gardencore.CloudProfile{Spec: gardencore.CloudProfileSpec{
		Kubernetes:    gardencore.KubernetesSettings{Versions: versions("1 expired", "2 expiring", "3", "4 coming")},
		MachineImages: []gardencore.MachineImage{images("a", "1 expired", "2 coming"), images("b", "3 expired")},
	}}
	cloudProfiles(clock).PrepareForCreate(t.Context(), profile)
	if got := offered(profile.Spec.Kubernetes.Versions, profile.Spec.MachineImages); got != "2 3 a 2 b" {
		t.Errorf("a CloudProfile offers %s", got)
	}
	namespaced := func() *gardencore.NamespacedCloudProfile {
		keep := images("c", "6 expired")
		keep.UpdateStrategy = ptr.To(gardencore.UpdateStrategyMinor)
		return &gardencore.NamespacedCloudProfile{Spec: gardencore.NamespacedCloudProfileSpec{
			Kubernetes:    &gardencore.KubernetesSettings{Versions: versions("1 expired", "2 expiring", "3 coming")},
			MachineImages: []gardencore.MachineImage{images("a", "4 expired", "5"), images("b", "4 expired"), keep},
		}}
	}
	created, updated := namespaced(), namespaced()
	def := namespacedCloudProfiles(clock)
	def.PrepareForCreate(t.Context(), created)
	if got := offered(created.Spec.Kubernetes.Versions, created.Spec.MachineImages); got != "2 a 5 c" {
		t.Errorf("a new NamespacedCloudProfile offers %s", got)
	}
	def.PrepareForUpdate(t.Context(), updated, &gardencore.NamespacedCloudProfile{Spec: gardencore.NamespacedCloudProfileSpec{
		Kubernetes:    &gardencore.KubernetesSettings{Versions: versions("1")},
		MachineImages: []gardencore.MachineImage{images("b", "4")},
	}})
	if got := offered(updated.Spec.Kubernetes.Versions, updated.Spec.MachineImages); got != "1 2 a 5 b 4 c" {
		t.Errorf("an updated NamespacedCloudProfile offers %s", got)
	}
}

// TestArchitectures checks the architecture fields and the capabilities of one image version and one machine type.
func TestArchitectures(t *testing.T) {
	capability := func(architectures ...string) gardencore.Capabilities {
		if len(architectures) == 0 {
			return nil
		}
		return gardencore.Capabilities{"architecture": architectures}
	}
	profile := func(defined, image, flavors []string, machine string, machineCapability ...string) *gardencore.CloudProfileSpec {
		version := gardencore.MachineImageVersion{ExpirableVersion: gardencore.ExpirableVersion{Version: "1"}, Architectures: image}
		for _, flavor := range flavors {
			version.CapabilityFlavors = append(version.CapabilityFlavors, gardencore.MachineImageFlavor{Capabilities: capability(flavor)})
		}
		spec := &gardencore.CloudProfileSpec{
			MachineImages: []gardencore.MachineImage{{Name: "i", Versions: []gardencore.MachineImageVersion{version}}},
			MachineTypes:  []gardencore.MachineType{{Name: "m", Capabilities: capability(machineCapability...)}},
		}
		if machine != "" {
			spec.MachineTypes[0].Architecture = &machine
		}
		if defined != nil {
			spec.MachineCapabilities = []gardencore.CapabilityDefinition{{Name: "architecture", Values: defined}}
		}
		return spec
	}
	type l = []string
	one, two := l{"amd64"}, l{"amd64", "arm64"}
	for name, test := range map[string]struct {
		spec, old *gardencore.CloudProfileSpec
		image     l
		flavors   int
		machine   string
		capable   l
	}{
		"no capabilities":         {profile(nil, one, nil, "arm64"), profile(nil, nil, nil, ""), one, 0, "arm64", nil},
		"one architecture":        {profile(one, nil, nil, ""), profile(nil, nil, nil, ""), one, 0, "amd64", nil},
		"two, told by the fields": {profile(two, one, nil, "arm64"), profile(nil, one, nil, "arm64"), one, 1, "arm64", l{"arm64"}},
		"two, told by nothing":    {profile(two, nil, nil, ""), profile(nil, nil, nil, ""), one, 1, "amd64", one},
		"two, told by the capabilities": {profile(two, nil, two, "", "arm64"), profile(two, nil, two, "", "arm64"), two,
			2, "arm64", l{"arm64"}},
		"two, known before": {profile(two, nil, nil, ""), profile(two, nil, nil, ""), two, 0, "", nil},
		"fields changed against the others": {profile(two, one, l{"arm64"}, "amd64", "arm64"),
			profile(two, l{"arm64"}, l{"arm64"}, "arm64", "arm64"), one, 1, "amd64", l{"arm64"}},
		"capabilities changed, fields stale": {profile(two, one, l{"arm64"}, "amd64", "arm64"),
			profile(two, one, l{"amd64"}, "amd64", "amd64"), one, 1, "amd64", l{"arm64"}},
		"definitions gone": {profile(nil, one, one, "amd64", "amd64"), profile(two, one, one, "amd64", "amd64"),
			one, 0, "amd64", nil},
	} {
		t.Run(name, func(t *testing.T) {
			syncArchitectures(test.spec, test.old)
			version, machine := test.spec.MachineImages[0].Versions[0], test.spec.MachineTypes[0]
			if !slices.Equal(version.Architectures, test.image) || len(version.CapabilityFlavors) != test.flavors {
				t.Errorf("image version %+v", version)
			}
			if ptr.Deref(machine.Architecture, "") != test.machine || !slices.Equal(machine.Capabilities["architecture"], test.capable) {
				t.Errorf("machine type %+v", machine)
			}
		})
	}
}

func TestInternalSecretKeepsItsType(t *testing.T) {
	secret := &gardencore.InternalSecret{}
	internalSecrets().PrepareForUpdate(t.Context(), secret, &gardencore.InternalSecret{Type: "t"})
	if secret.Type != "t" {
		t.Errorf("type %q", secret.Type)
	}
}

func TestSecretBindingGetsAName(t *testing.T) {
	binding := &gardencore.SecretBinding{}
	if secretBindings().PrepareForCreate(t.Context(), binding); binding.Name == "" {
		t.Error("no name")
	}
}
