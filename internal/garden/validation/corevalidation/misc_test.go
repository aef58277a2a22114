package corevalidation

import (
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

func shootReference(namespace string) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Name: "shoot", Namespace: namespace}
}

func TestValidateBackupBucket(t *testing.T) {
	type b = gardencore.BackupBucket
	valid := func() *b {
		return &b{ObjectMeta: objectMeta("bucket", ""), Spec: gardencore.BackupBucketSpec{
			Provider: gardencore.BackupBucketProvider{Type: "local", Region: "here"}, SeedName: ptr.To("seed"),
			CredentialsRef: secretRef("backup", "garden")}}
	}
	runMutations(t, valid, ValidateBackupBucket, []mutation[b]{
		{"empty", func(b *b) { b.Spec = gardencore.BackupBucketSpec{} },
			[]string{"Invalid spec.provider.type", "Invalid spec.provider.region", "Invalid spec.seedName", "Required spec.credentialsRef"}},
		{"empty seed", func(b *b) { b.Spec.SeedName = ptr.To("") }, []string{"Invalid spec.seedName"}},
		{"seed and shoot", func(b *b) { b.Spec.ShootRef = shootReference("a") }, []string{"Invalid spec.seedName"}},
		{"shoot", func(b *b) { b.Spec.SeedName, b.Spec.ShootRef = nil, shootReference("a") }, nil},
		{"empty shoot", func(b *b) { b.Spec.SeedName, b.Spec.ShootRef = nil, &corev1.ObjectReference{} }, []string{
			"Forbidden spec.shootRef.apiVersion", "Forbidden spec.shootRef.kind", "Invalid spec.shootRef.name", "Invalid spec.shootRef.namespace"}},
	})
	runMutations(t, valid, after(valid, ValidateBackupBucketUpdate), []mutation[b]{
		{"provider and seed", func(b *b) { b.Spec.Provider.Region, b.Spec.SeedName = "there", ptr.To("x") },
			[]string{"Invalid spec.provider", "Invalid spec.seedName"}},
		{"credentials", func(b *b) { b.Spec.CredentialsRef.Name = "x" }, nil},
	})
}

func TestValidateBackupEntry(t *testing.T) {
	type e = gardencore.BackupEntry
	valid := func() *e {
		return &e{ObjectMeta: objectMeta("shoot--dev--a--uid", "garden-dev"),
			Spec: gardencore.BackupEntrySpec{BucketName: "bucket", SeedName: ptr.To("seed")}}
	}
	runMutations(t, valid, ValidateBackupEntry, []mutation[e]{
		{"empty", func(e *e) { e.Spec = gardencore.BackupEntrySpec{} }, []string{"Invalid spec.bucketName", "Invalid spec.seedName"}},
		{"any name", func(e *e) { e.Name = "A_b" }, nil},
		{"shoot", func(e *e) { e.Spec.SeedName, e.Spec.ShootRef = nil, shootReference("garden-dev") }, nil},
		{"shoot elsewhere", func(e *e) { e.Spec.SeedName, e.Spec.ShootRef = nil, shootReference("a") },
			[]string{"Forbidden spec.shootRef.namespace"}},
		{"seed and shoot elsewhere", func(e *e) { e.Spec.ShootRef = shootReference("a") }, []string{"Invalid spec.seedName"}},
	})
	runMutations(t, valid, after(valid, ValidateBackupEntryUpdate), []mutation[e]{
		{"migration", func(e *e) { e.Spec.BucketName, e.Spec.SeedName = "x", ptr.To("x") }, nil},
	})
}

func TestValidateExposureClass(t *testing.T) {
	type c = gardencore.ExposureClass
	valid := func() *c {
		return &c{ObjectMeta: objectMeta("internet", ""), Handler: "internet", Scheduling: &gardencore.ExposureClassScheduling{
			SeedSelector: &gardencore.SeedSelector{}, Tolerations: []gardencore.Toleration{{Key: "a"}}}}
	}
	runMutations(t, valid, ValidateExposureClass, []mutation[c]{
		{"name", func(c *c) { c.Name = "a.b" }, []string{"Invalid metadata.name"}},
		{"handler", func(c *c) { c.Handler = "A" }, []string{"Invalid handler"}},
		{"long handler", func(c *c) { c.Handler = strings.Repeat("a", 35) }, []string{"Invalid handler"}},
		{"scheduling", func(c *c) {
			c.Scheduling.SeedSelector.MatchLabels, c.Scheduling.Tolerations[0].Key = map[string]string{"?": ""}, ""
		}, []string{
			"Invalid scheduling.seedSelector.matchLabels", "Required scheduling.tolerations[0].key"}},
	})
	runMutations(t, valid, after(valid, ValidateExposureClassUpdate), []mutation[c]{
		{"all", func(c *c) { c.Handler, c.Scheduling = "x", nil }, []string{"Invalid handler", "Invalid scheduling"}},
		{"labels", func(c *c) { c.Labels = map[string]string{"a": "b"} }, nil},
	})
}

func TestValidateInternalSecret(t *testing.T) {
	type s = gardencore.InternalSecret
	valid := func() *s {
		return &s{ObjectMeta: objectMeta("shoot.ca-client", "garden-dev"), Data: map[string][]byte{"ca.crt": []byte("x")},
			Type: corev1.SecretTypeOpaque}
	}
	typed := func(secretType corev1.SecretType, data ...string) func(*s) {
		return func(s *s) {
			s.Type, s.Data = secretType, map[string][]byte{}
			for i := 0; i < len(data); i += 2 {
				s.Data[data[i]] = []byte(data[i+1])
			}
		}
	}
	runMutations(t, valid, ValidateInternalSecret, []mutation[s]{
		{"keys", func(s *s) { s.Data["a/b"] = nil }, []string{"Invalid data[a/b]"}},
		{"size", func(s *s) { s.Data["a"] = make([]byte, corev1.MaxSecretSize) }, []string{"TooLong data"}},
		{"own type", typed("mine"), nil},
		{"token", typed(corev1.SecretTypeServiceAccountToken), []string{"Required metadata.annotations[kubernetes.io/service-account.name]"}},
		{"dockercfg", typed(corev1.SecretTypeDockercfg), []string{"Required data[.dockercfg]"}},
		{"dockercfg content", typed(corev1.SecretTypeDockercfg, ".dockercfg", "["), []string{"Invalid data[.dockercfg]"}},
		{"docker config", typed(corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", "{}"), nil},
		{"basic auth", typed(corev1.SecretTypeBasicAuth), []string{"Required data[username]", "Required data[password]"}},
		{"basic auth without password", typed(corev1.SecretTypeBasicAuth, "username", ""), nil},
		{"SSH", typed(corev1.SecretTypeSSHAuth, "ssh-privatekey", ""), []string{"Required data[ssh-privatekey]"}},
		{"TLS", typed(corev1.SecretTypeTLS), []string{"Required data[tls.crt]", "Required data[tls.key]"}},
	})
	runMutations(t, valid, after(valid, ValidateInternalSecretUpdate), []mutation[s]{
		{"data", func(s *s) { s.Data["a"] = nil }, nil},
		{"type", func(s *s) { s.Type = "x" }, []string{"Invalid type"}},
	})
	fixed, changed := valid(), valid()
	fixed.Immutable, changed.Data["a"] = ptr.To(true), nil
	wantErrors(t, ValidateInternalSecretUpdate(changed, fixed), "Forbidden immutable", "Forbidden data")
}

func TestValidateQuota(t *testing.T) {
	type q = gardencore.Quota
	valid := func() *q {
		return &q{ObjectMeta: objectMeta("trial", "garden-dev"), Spec: gardencore.QuotaSpec{
			ClusterLifetimeDays: ptr.To[int32](14), Scope: corev1.ObjectReference{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Project"},
			Metrics: corev1.ResourceList{"cpu": *quantity("1"), "storage.standard": *quantity("1Gi")}}}
	}
	runMutations(t, valid, ValidateQuota, []mutation[q]{
		{"lifetime", func(q *q) { q.Spec.ClusterLifetimeDays = ptr.To[int32](0) }, []string{"Invalid spec.clusterLifetimeDays"}},
		{"scope", func(q *q) { q.Spec.Scope.APIVersion = "v1" }, []string{"NotSupported spec.scope"}},
		{"secret scope", func(q *q) { q.Spec.Scope.APIVersion, q.Spec.Scope.Kind = "v1", "Secret" }, nil},
		{"metrics", func(q *q) { q.Spec.Metrics["x"], q.Spec.Metrics["cpu"] = *quantity("1"), *quantity("-1") },
			[]string{"Invalid spec.metrics[x]", "Invalid spec.metrics[cpu]"}},
	})
	runMutations(t, valid, after(valid, ValidateQuotaUpdate), []mutation[q]{
		{"scope", func(q *q) { q.Spec.Scope = *secretRef("", "") }, []string{"Invalid spec.scope"}},
		{"metrics", func(q *q) { q.Spec.Metrics = nil }, nil},
	})
}

func TestValidateSecretBinding(t *testing.T) {
	type b = gardencore.SecretBinding
	valid := func() *b {
		return &b{ObjectMeta: objectMeta("binding", "garden-dev"), SecretRef: corev1.SecretReference{Name: "secret"},
			Quotas: []corev1.ObjectReference{{Name: "quota", Namespace: "garden"}}, Provider: &gardencore.SecretBindingProvider{Type: "local"}}
	}
	runMutations(t, valid, ValidateSecretBinding, []mutation[b]{
		{"secret", func(b *b) { b.SecretRef = corev1.SecretReference{Namespace: "?"} },
			[]string{"Required secretRef.name", "Invalid secretRef.namespace"}},
		{"quota", func(b *b) { b.Quotas[0] = corev1.ObjectReference{Name: "?"} }, []string{"Invalid quotas[0].name"}},
		{"no provider", func(b *b) { b.Provider = nil }, []string{"Required provider"}},
		{"no provider type", func(b *b) { b.Provider.Type = "" }, []string{"Required provider.type"}},
	})
	runMutations(t, valid, after(valid, ValidateSecretBindingUpdate), []mutation[b]{
		{"all", func(b *b) { b.SecretRef.Name, b.Quotas, b.Provider = "x", nil, nil },
			[]string{"Invalid secretRef", "Invalid quotas", "Invalid provider"}},
	})
	old := valid()
	old.Provider = nil
	wantErrors(t, ValidateSecretBindingUpdate(valid(), old))
	wantErrors(t, ValidateSecretBindingUpdate(old, old))
}

func TestValidateShootState(t *testing.T) {
	type s = gardencore.ShootState
	reference := autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "a"}
	valid := func() *s {
		return &s{ObjectMeta: metav1.ObjectMeta{Name: "shoot", Namespace: "garden-dev", ResourceVersion: "1"}, Spec: gardencore.ShootStateSpec{
			Gardener: []gardencore.GardenerResourceData{{Name: "ca", Type: "secret"}},
			Extensions: []gardencore.ExtensionResourceState{
				{Kind: "Worker", Resources: []gardencore.NamedResourceReference{{Name: "a", ResourceRef: reference}}}},
			Resources: []gardencore.ResourceData{{CrossVersionObjectReference: reference}},
		}}
	}
	runMutations(t, valid, ValidateShootState, []mutation[s]{
		{"all", func(s *s) {
			s.Spec = gardencore.ShootStateSpec{Gardener: []gardencore.GardenerResourceData{{}}, Resources: []gardencore.ResourceData{
				{CrossVersionObjectReference: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Pod", Name: "a"}}},
				Extensions: []gardencore.ExtensionResourceState{
					{Purpose: ptr.To(""), Resources: []gardencore.NamedResourceReference{{ResourceRef: reference}}}}}
		}, []string{"Invalid spec.gardener[0].name", "Invalid spec.extensions[0].kind", "Invalid spec.extensions[0].purpose",
			"Required spec.resources[0].name", "NotSupported spec.resources[0]"}},
	})
	wantErrors(t, ValidateShootStateUpdate(valid(), valid()))
}
