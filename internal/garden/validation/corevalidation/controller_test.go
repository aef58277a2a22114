package corevalidation

import (
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

func TestValidateControllerDeployment(t *testing.T) {
	type d = gardencore.ControllerDeployment
	valid := func() *d {
		return &d{ObjectMeta: objectMeta("local", ""), Helm: &gardencore.HelmControllerDeployment{
			RawChart: []byte("chart"), Values: &apiextensionsv1.JSON{Raw: []byte(`{"a":["{{ .resources.creds.data.key }}"]}`)}},
			Resources: []gardencore.NamedResourceReference{
				{Name: "creds", ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "creds"}}}}
	}
	oci := func(repository gardencore.OCIRepository) func(*d) {
		return func(d *d) { d.Helm.RawChart, d.Helm.OCIRepository = nil, &repository }
	}
	values := func(raw string) func(*d) { return func(d *d) { d.Helm.Values.Raw = []byte(raw) } }
	digest := ptr.To("sha256:abc")
	runMutations(t, valid, ValidateControllerDeployment, []mutation[d]{
		{"name", func(d *d) { d.Name = "a.b" }, []string{"Invalid metadata.name"}},
		{"custom type", func(d *d) { d.Helm, d.Type, d.ProviderConfig = nil, "custom", &runtime.Unknown{} }, nil},
		{"nothing", func(d *d) { d.Helm = nil }, []string{"Forbidden []"}},
		{"helm and custom type", func(d *d) { d.Type, d.ProviderConfig = "helm", &runtime.Unknown{} },
			[]string{"Forbidden type", "Forbidden providerConfig"}},
		{"no chart", func(d *d) { d.Helm.RawChart = nil }, []string{"Required helm"}},
		{"two charts", func(d *d) { d.Helm.OCIRepository = &gardencore.OCIRepository{Ref: ptr.To("x:1")} }, []string{"Required helm"}},
		{"OCI ref", oci(gardencore.OCIRepository{Ref: ptr.To("x:1")}), nil},
		{"OCI tag", oci(gardencore.OCIRepository{Repository: ptr.To("x"), Tag: ptr.To("1")}), nil},
		{"OCI digest", oci(gardencore.OCIRepository{Repository: ptr.To("x"), Digest: digest}), nil},
		{"OCI nothing", oci(gardencore.OCIRepository{Ref: ptr.To("")}), []string{"Required helm.ociRepository"}},
		{"OCI ref and others", oci(gardencore.OCIRepository{Ref: ptr.To("x:1"), Repository: ptr.To("x"), Tag: ptr.To("1"), Digest: digest}),
			[]string{
				"Forbidden helm.ociRepository.repository", "Forbidden helm.ociRepository.tag", "Forbidden helm.ociRepository.digest"}},
		{"OCI neither tag nor digest", oci(gardencore.OCIRepository{Repository: ptr.To("x")}), []string{"Required helm.ociRepository"}},
		{"OCI malformed digest", oci(gardencore.OCIRepository{Repository: ptr.To("x"), Digest: ptr.To("md5:abc")}),
			[]string{"Invalid helm.ociRepository.digest"}},
		{"resource name", func(d *d) { d.Resources[0].Name = "cre-ds"; d.Helm.Values = nil }, []string{"Invalid resources[0].name"}},
		{"no resource name", func(d *d) { d.Resources[0].Name = ""; d.Helm.Values = nil },
			[]string{"Required resources[0].name", "Invalid resources[0].name"}},
		{"values", values(`{`), []string{"Invalid helm.values"}},
		{"undeclared resource", values(`{"{{.resources.other.data.key}}":1}`), []string{"Invalid helm.values"}},
		{"other template", values(`["{{ .Values.x }}"]`), []string{"Invalid helm.values"}},
		{"stray braces", values(`["{{", "}}", "{{ {{ .resources.creds.data.key }} }}"]`),
			[]string{"Invalid helm.values", "Invalid helm.values", "Invalid helm.values", "Invalid helm.values"}},
	})
	wantErrors(t, ValidateControllerDeploymentUpdate(&d{ObjectMeta: objectMeta("local", ""), Type: "custom"}, valid()))
}

func TestValidateControllerRegistration(t *testing.T) {
	type r = gardencore.ControllerRegistration
	strategy := func(s gardencore.ControllerResourceLifecycleStrategy) *gardencore.ControllerResourceLifecycleStrategy {
		return &s
	}
	valid := func() *r {
		return &r{ObjectMeta: objectMeta("local", ""), Spec: gardencore.ControllerRegistrationSpec{
			Resources: []gardencore.ControllerResource{
				{Kind: "Infrastructure", Type: "local", Primary: ptr.To(true)},
				{Kind: "Extension", Type: "dns", Primary: ptr.To(true), ReconcileTimeout: &metav1.Duration{},
					ClusterCompatibility: []gardencore.ClusterType{"shoot", "seed"}, AutoEnable: []gardencore.ClusterType{"shoot"},
					Lifecycle: &gardencore.ControllerResourceLifecycle{Reconcile: strategy("AfterWorker"),
						Delete: strategy("BeforeKubeAPIServer"), Migrate: strategy("AfterKubeAPIServer")}},
			},
			Deployment: &gardencore.ControllerRegistrationDeployment{Policy: ptr.To(gardencore.ControllerDeploymentPolicyAlways),
				DeploymentRefs: []gardencore.DeploymentRef{{Name: "local"}}},
		}}
	}
	runMutations(t, valid, ValidateControllerRegistration, []mutation[r]{
		{"empty resource", func(r *r) { r.Spec.Resources[0] = gardencore.ControllerResource{} },
			[]string{"Required spec.resources[0].kind", "NotSupported spec.resources[0].kind", "Required spec.resources[0].type"}},
		{"repeated resource", func(r *r) { r.Spec.Resources = append(r.Spec.Resources, r.Spec.Resources[0]) },
			[]string{"Duplicate spec.resources[2]"}},
		{"fields of extensions", func(r *r) { r.Spec.Resources[1].Kind = "Network" },
			[]string{"Forbidden spec.resources[1].autoEnable", "Forbidden spec.resources[1].clusterCompatibility",
				"Forbidden spec.resources[1].reconcileTimeout", "Forbidden spec.resources[1].lifecycle"}},
		{"field of exposures", func(r *r) { r.Spec.Resources[1].ContinuousEndpointUpdate = ptr.To(true) },
			[]string{"Forbidden spec.resources[1].continuousEndpointUpdate"}},
		{"cluster types", func(r *r) {
			r.Spec.Resources[1].ClusterCompatibility, r.Spec.Resources[1].AutoEnable = []gardencore.ClusterType{"seed", "seed", "garden"},
				[]gardencore.ClusterType{"shoot", "seed", "seed", "x"}
		}, []string{"Duplicate spec.resources[1].clusterCompatibility[1]", "NotSupported spec.resources[1].clusterCompatibility[2]",
			"Forbidden spec.resources[1].autoEnable[0]",
			"Duplicate spec.resources[1].autoEnable[2]", "NotSupported spec.resources[1].autoEnable[3]",
			"Forbidden spec.resources[1].autoEnable[3]"}},
		{"lifecycle", func(r *r) {
			*r.Spec.Resources[1].Lifecycle = gardencore.ControllerResourceLifecycle{
				Reconcile: strategy("x"), Delete: strategy("AfterWorker"), Migrate: strategy("AfterWorker")}
		}, []string{"NotSupported spec.resources[1].lifecycle.reconcile", "NotSupported spec.resources[1].lifecycle.delete",
			"NotSupported spec.resources[1].lifecycle.migrate"}},
		{"policy", func(r *r) { *r.Spec.Deployment.Policy = "x" }, []string{"NotSupported spec.deployment.policy"}},
		{"deployments", func(r *r) { r.Spec.Deployment.DeploymentRefs = make([]gardencore.DeploymentRef, 2) },
			[]string{"Forbidden spec.deployment.deploymentRefs", "Required spec.deployment.deploymentRefs[0].name",
				"Required spec.deployment.deploymentRefs[1].name"}},
		{"seed selector and primary", func(r *r) {
			r.Spec.Deployment.SeedSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"?": ""}}
			r.Spec.Resources[0].Primary = nil
		}, []string{"Forbidden spec.deployment.seedSelector", "Invalid spec.deployment.seedSelector.matchLabels"}},
		{"seed selector", func(r *r) {
			r.Spec.Deployment.SeedSelector = &metav1.LabelSelector{}
			r.Spec.Resources[0].Primary, r.Spec.Resources[1].Primary = ptr.To(false), ptr.To(false)
		}, nil},
	})
	runMutations(t, valid, after(valid, ValidateControllerRegistrationUpdate), []mutation[r]{
		{"primary", func(r *r) { r.Spec.Resources[0].Primary = ptr.To(false) }, []string{"Invalid spec.resources[0].primary"}},
		{"other resource", func(r *r) { r.Spec.Resources[0] = gardencore.ControllerResource{Kind: "Worker", Type: "local"} }, nil},
	})
	deleted, changed := valid(), valid()
	deleted.DeletionTimestamp = inDays(0)
	changed.DeletionTimestamp, changed.Spec.Deployment = deleted.DeletionTimestamp, nil
	wantErrors(t, ValidateControllerRegistrationUpdate(deleted, deleted))
	wantErrors(t, ValidateControllerRegistrationUpdate(changed, deleted), "Forbidden spec")
}

func TestValidateControllerInstallation(t *testing.T) {
	type i = gardencore.ControllerInstallation
	valid := func() *i {
		return &i{ObjectMeta: objectMeta("local", ""), Spec: gardencore.ControllerInstallationSpec{
			RegistrationRef: corev1.ObjectReference{Name: "local"}, SeedRef: &corev1.ObjectReference{Name: "seed"}}}
	}
	shoot := &corev1.ObjectReference{Name: "a", Namespace: "b"}
	runMutations(t, valid, ValidateControllerInstallation, []mutation[i]{
		{"empty", func(i *i) { i.Spec = gardencore.ControllerInstallationSpec{} },
			[]string{"Required spec.registrationRef.name", "Forbidden spec.seedRef"}},
		{"empty references", func(i *i) { i.Spec.SeedRef.Name, i.Spec.ShootRef = "", &corev1.ObjectReference{} },
			[]string{"Required spec.seedRef.name", "Required spec.shootRef.name", "Required spec.shootRef.namespace"}},
		{"shoot", func(i *i) { i.Spec.SeedRef, i.Spec.ShootRef = nil, shoot }, nil},
	})
	runMutations(t, valid, after(valid, ValidateControllerInstallationUpdate), []mutation[i]{
		{"registration and seed", func(i *i) { i.Spec.RegistrationRef.Name, i.Spec.SeedRef.Name = "x", "x" },
			[]string{"Invalid spec.registrationRef.name", "Invalid spec.seedRef.name"}},
		{"add shoot", func(i *i) { i.Spec.ShootRef = shoot }, []string{"Invalid spec.shootRef"}},
		{"deployment", func(i *i) { i.Spec.DeploymentRef = &corev1.ObjectReference{Name: "x"} }, nil},
		{"in deletion", func(i *i) { i.DeletionTimestamp, i.Spec.DeploymentRef = inDays(0), &corev1.ObjectReference{} },
			[]string{"Invalid metadata.deletionTimestamp", "Forbidden spec"}},
	})
	old, changed := valid(), valid()
	old.Spec.ShootRef, changed.Spec.ShootRef = shoot, &corev1.ObjectReference{Name: "x", Namespace: "x"}
	wantErrors(t, ValidateControllerInstallationUpdate(changed, old), "Invalid spec.shootRef.name", "Invalid spec.shootRef.namespace")
}
