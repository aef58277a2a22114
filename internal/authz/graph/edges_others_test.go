package graph

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"testing"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEdgesOfBastionAndBackups(t *testing.T) {
	bucket := func(change func(*gardencorev1beta1.BackupBucket)) *gardencorev1beta1.BackupBucket {
		b := &gardencorev1beta1.BackupBucket{ObjectMeta: meta("", "b")}
		change(b)
		return b
	}
	entry := func(spec, status *string, owners ...metav1.OwnerReference) *gardencorev1beta1.BackupEntry {
		e := &gardencorev1beta1.BackupEntry{ObjectMeta: meta("garden-dev", "e")}
		e.Spec.BucketName, e.Spec.SeedName, e.Status.SeedName, e.OwnerReferences = "b", spec, status, owners
		return e
	}
	shoot := metav1.OwnerReference{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Name: "a"}
	other := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Shoot", Name: "no"}
	runEdgeCases(t, []edgeCase{
		{"Bastion", &operationsv1alpha1.Bastion{ObjectMeta: meta("garden-dev", "b"),
			Spec: operationsv1alpha1.BastionSpec{SeedName: to("x"), ShootRef: corev1.LocalObjectReference{Name: "a"}}},
			nil, "Bastion garden-dev/b", `Bastion garden-dev/b → Seed x`},
		{"Bastion of no seed yet", &operationsv1alpha1.Bastion{ObjectMeta: meta("garden-dev", "b")}, nil, "Bastion garden-dev/b", ""},
		{"BackupBucket", bucket(func(b *gardencorev1beta1.BackupBucket) {
			b.Spec.SeedName, b.Spec.CredentialsRef = to("x"), to(ref("v1 Secret garden/backup"))
			b.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: "garden", Name: "generated-bucket-b"}
		}), nil, "BackupBucket b", `
			Secret garden/backup → BackupBucket b
			Secret garden/generated-bucket-b → BackupBucket b
			BackupBucket b → Seed x`},
		{"BackupBucket by workload identity", bucket(func(b *gardencorev1beta1.BackupBucket) {
			b.Spec.CredentialsRef = to(ref("security.gardener.cloud/v1alpha1 WorkloadIdentity garden/backup"))
		}), nil, "BackupBucket b", `WorkloadIdentity garden/backup → BackupBucket b`},
		{"BackupBucket, references without a namespace", bucket(func(b *gardencorev1beta1.BackupBucket) {
			b.Spec.CredentialsRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Name: "no"}
			b.Status.GeneratedSecretRef = &corev1.SecretReference{Name: "no"}
		}), nil, "BackupBucket b", ""},
		{"BackupEntry", entry(to("x"), to("y"), other, shoot), nil, "BackupEntry garden-dev/e", `
			BackupBucket b → Seed x
			BackupEntry garden-dev/e → Seed x
			BackupEntry garden-dev/e → Seed y
			BackupEntry garden-dev/e → Shoot garden-dev/a`},
		{"BackupEntry without owner", entry(nil, nil, other), nil, "BackupEntry garden-dev/e", ""},
	})
}

func TestEdgesOfControllers(t *testing.T) {
	installation := &gardencorev1beta1.ControllerInstallation{ObjectMeta: meta("", "i")}
	installation.Spec.RegistrationRef.Name = "r"
	complete := installation.DeepCopy()
	complete.Spec.DeploymentRef, complete.Spec.SeedRef = &corev1.ObjectReference{Name: "d"}, &corev1.ObjectReference{Name: "x"}

	deployment := &gardencorev1.ControllerDeployment{ObjectMeta: meta("", "d")}
	referring := deployment.DeepCopy()
	referring.Helm = &gardencorev1.HelmControllerDeployment{OCIRepository: &gardencorev1.OCIRepository{
		PullSecretRef: &corev1.LocalObjectReference{Name: "pull"}, CABundleSecretRef: &corev1.LocalObjectReference{Name: "ca"},
	}}
	for _, kind := range []string{"Secret", "ConfigMap", "Deployment"} {
		referring.Resources = append(referring.Resources, gardencorev1.NamedResourceReference{
			ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: kind, Name: "values"},
		})
	}
	runEdgeCases(t, []edgeCase{
		{"ControllerInstallation", complete, nil, "ControllerInstallation i", `
			ControllerRegistration r → ControllerInstallation i
			ControllerDeployment d → ControllerInstallation i
			ControllerInstallation i → Seed x`},
		{"ControllerInstallation of no seed", installation, nil, "ControllerInstallation i",
			`ControllerRegistration r → ControllerInstallation i`},
		{"ControllerDeployment", referring, nil, "ControllerDeployment d", `
			Secret garden/pull → ControllerDeployment d
			Secret garden/ca → ControllerDeployment d
			Secret garden/values → ControllerDeployment d
			ConfigMap garden/values → ControllerDeployment d`},
		{"ControllerDeployment that refers to nothing", deployment, nil, "ControllerDeployment d", ""},
	})
}

func TestEdgesOfProjectAndBindings(t *testing.T) {
	binding := func(text string) *securityv1alpha1.CredentialsBinding {
		return &securityv1alpha1.CredentialsBinding{ObjectMeta: meta("garden-dev", "b"), CredentialsRef: ref(text)}
	}
	const credentialsBinding = "CredentialsBinding garden-dev/b"
	account := &corev1.ServiceAccount{ObjectMeta: meta("garden", "sa"),
		Secrets: []corev1.ObjectReference{{Name: "token-1"}, {Name: "token-2", Namespace: "elsewhere"}, {}}}
	runEdgeCases(t, []edgeCase{
		{"Project", &gardencorev1beta1.Project{
			ObjectMeta: meta("", "dev"), Spec: gardencorev1beta1.ProjectSpec{Namespace: to("garden-dev")}}, nil,
			"Project dev", `Project dev → Namespace garden-dev`},
		{"Project without a namespace yet", &gardencorev1beta1.Project{ObjectMeta: meta("", "dev")}, nil, "Project dev", ""},
		{"SecretBinding", &gardencorev1beta1.SecretBinding{ObjectMeta: meta("garden-dev", "b"),
			SecretRef: corev1.SecretReference{Namespace: "garden-core", Name: "s"}}, nil,
			"SecretBinding garden-dev/b", `Secret garden-core/s → SecretBinding garden-dev/b`},
		{"CredentialsBinding to a Secret", binding("v1 Secret garden-core/s"), nil, credentialsBinding,
			`Secret garden-core/s → CredentialsBinding garden-dev/b`},
		{"CredentialsBinding to an InternalSecret", binding("core.gardener.cloud/v1beta1 InternalSecret garden-core/s"), nil, credentialsBinding,
			`InternalSecret garden-core/s → CredentialsBinding garden-dev/b`},
		{"CredentialsBinding to a WorkloadIdentity", binding("security.gardener.cloud/v1alpha1 WorkloadIdentity garden-core/s"),
			nil, credentialsBinding,
			`WorkloadIdentity garden-core/s → CredentialsBinding garden-dev/b`},
		{"CredentialsBinding to something else", binding("v1 ConfigMap garden-core/s"), nil, credentialsBinding, ""},
		{"ServiceAccount", account, nil, "ServiceAccount garden/sa", `
			Secret garden/token-1 → ServiceAccount garden/sa
			Secret garden/token-2 → ServiceAccount garden/sa`},
	})
}

func TestEdgesOfCertificateSigningRequest(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	usages := []certificatesv1.KeyUsage{certificatesv1.UsageKeyEncipherment, certificatesv1.UsageDigitalSignature,
		certificatesv1.UsageClientAuth}
	const yes, no = `CertificateSigningRequest r → Seed x`, ""
	subject := pkix.Name{Organization: []string{"gardener.cloud:system:seeds"}, CommonName: "gardener.cloud:system:seed:x"}
	type change = func(*x509.CertificateRequest, *certificatesv1.CertificateSigningRequest)
	type request = *certificatesv1.CertificateSigningRequest

	var cases []edgeCase
	for _, c := range []struct {
		name   string
		edges  string
		change change
	}{
		{"seed client certificate", yes, func(*x509.CertificateRequest, request) {}},
		{"usages in another order", yes, func(_ *x509.CertificateRequest, r request) {
			r.Spec.Usages = []certificatesv1.KeyUsage{usages[2], usages[0], usages[1]}
		}},
		{"another organization", no, func(c *x509.CertificateRequest, _ request) { c.Subject.Organization = []string{"system:masters"} }},
		{"one organization more", no, func(c *x509.CertificateRequest, _ request) {
			c.Subject.Organization = append([]string{"system:masters"}, c.Subject.Organization...)
		}},
		{"no organization", no, func(c *x509.CertificateRequest, _ request) { c.Subject.Organization = nil }},
		{"another user", no, func(c *x509.CertificateRequest, _ request) { c.Subject.CommonName = "x" }},
		{"no seed", no, func(c *x509.CertificateRequest, _ request) { c.Subject.CommonName = "gardener.cloud:system:seed:" }},
		{"DNS name", no, func(c *x509.CertificateRequest, _ request) { c.DNSNames = []string{"a"} }},
		{"e-mail address", no, func(c *x509.CertificateRequest, _ request) { c.EmailAddresses = []string{"a@b.c"} }},
		{"IP address", no, func(c *x509.CertificateRequest, _ request) { c.IPAddresses = []net.IP{{1, 2, 3, 4}} }},
		{"URI", no, func(c *x509.CertificateRequest, _ request) { c.URIs = []*url.URL{{Scheme: "spiffe", Host: "a"}} }},
		{"a usage less", no, func(_ *x509.CertificateRequest, r request) { r.Spec.Usages = usages[:2] }},
		{"a usage more", no, func(_ *x509.CertificateRequest, r request) {
			r.Spec.Usages = append(usages[:3:3], certificatesv1.UsageServerAuth)
		}},
	} {
		template, r := &x509.CertificateRequest{Subject: subject}, &certificatesv1.CertificateSigningRequest{ObjectMeta: meta("", "r")}
		r.Spec.Usages = usages
		c.change(template, r)
		der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
		if err != nil {
			t.Fatal(err)
		}
		r.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
		cases = append(cases, edgeCase{c.name, r, nil, "CertificateSigningRequest r", c.edges})
	}
	for name, text := range map[string]string{"nothing": "", "no PEM": "x",
		"no request in it": "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"} {
		r := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: meta("", "r"), Spec: certificatesv1.CertificateSigningRequestSpec{Request: []byte(text), Usages: usages}}
		cases = append(cases, edgeCase{name, r, nil, "CertificateSigningRequest r", ""})
	}
	runEdgeCases(t, cases)
}
