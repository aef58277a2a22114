package gardenwebhooks

import (
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	validPolicy         = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]}`
	invalidPolicy       = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Some"}]}`
	validAuthentication = `{"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthenticationConfiguration", "jwt": [{
		"issuer": {"url": "https://issuer.example", "audiences": ["a"]}, "claimMappings": {"username": {"claim": "sub", "prefix": ""}}}]}`
	anonymousAuthentication = `{"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthenticationConfiguration",
		"anonymous": {"enabled": true}}`
	validAuthorization = `{"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthorizationConfiguration", "authorizers": [{
		"type": "Webhook", "name": "hook", "webhook": {"timeout": "3s", "subjectAccessReviewVersion": "v1", "authorizedTTL": "30s",
		"unauthorizedTTL": "30s", "matchConditionSubjectAccessReviewVersion": "v1", "failurePolicy": "Deny"}}]}`
	connectedAuthorization = `{"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthorizationConfiguration", "authorizers": [{
		"type": "Webhook", "name": "hook", "webhook": {"connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "/etc/passwd"}}}]}`
	builtInAuthorization = `{"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthorizationConfiguration", "authorizers": [{
		"type": "RBAC", "name": "rbac"}]}`
)

func configMap(key, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: meta(project, "c"), Data: map[string]string{key: text}}
}

// TestConfigurations checks each webhook with a Shoot that refers to a ConfigMap, and with the ConfigMap when it is changed.
func TestConfigurations(t *testing.T) {
	audited := shoot("s", func(c *gardencorev1beta1.KubeAPIServerConfig) {
		c.AuditConfig = &gardencorev1beta1.AuditConfig{AuditPolicy: &gardencorev1beta1.AuditPolicy{
			ConfigMapRef: &corev1.ObjectReference{Name: "c"}}}
	})
	authenticated := func(change func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
		s := shoot("s", func(c *gardencorev1beta1.KubeAPIServerConfig) {
			c.StructuredAuthentication = &gardencorev1beta1.StructuredAuthentication{ConfigMapName: "c"}
		})
		change(s)
		return s
	}
	authorized := func(authorizer string) *gardencorev1beta1.Shoot {
		return shoot("s", func(c *gardencorev1beta1.KubeAPIServerConfig) {
			c.StructuredAuthorization = &gardencorev1beta1.StructuredAuthorization{ConfigMapName: "c",
				Kubeconfigs: []gardencorev1beta1.AuthorizerKubeconfigReference{{AuthorizerName: authorizer, SecretName: "k"}}}
		})
	}
	plain := authenticated(func(*gardencorev1beta1.Shoot) {})
	ownIssuer := authenticated(func(s *gardencorev1beta1.Shoot) {
		s.Spec.Kubernetes.KubeAPIServer.ServiceAccountConfig = &gardencorev1beta1.ServiceAccountConfig{Issuer: ptr.To("https://issuer.example")}
	})
	advertised := authenticated(func(s *gardencorev1beta1.Shoot) {
		s.Status.AdvertisedAddresses = []gardencorev1beta1.ShootAdvertisedAddress{{Name: "external", URL: "https://issuer.example"}}
	})
	managed := authenticated(func(s *gardencorev1beta1.Shoot) {
		s.Annotations, s.UID = map[string]string{"authentication.gardener.cloud/issuer": "managed"}, "uid"
	})
	anonymous := authenticated(func(s *gardencorev1beta1.Shoot) {
		s.Spec.Kubernetes.KubeAPIServer.EnableAnonymousAuthentication = ptr.To(true)
	})
	issuer := secret("garden", "issuer", "hostname", "issuer.example")
	issuer.Labels = map[string]string{"gardener.cloud/role": "shoot-service-account-issuer"}
	garden := []client.Object{issuer, &corev1.Namespace{ObjectMeta: meta("", project, "project.gardener.cloud/name", "dev")}}
	managedIssuer := `{"apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthenticationConfiguration", "jwt": [{"issuer": {"url": ` +
		`"https://issuer.example/projects/dev/shoots/uid/issuer", "audiences": ["a"]}, ` +
		`"claimMappings": {"username": {"claim": "sub", "prefix": ""}}}]}`
	for name, test := range map[string]struct {
		webhook, key, text string
		shoot              *gardencorev1beta1.Shoot
		want               string
	}{
		"valid policy":   {"audit-policies", "policy", validPolicy, audited, ""},
		"invalid policy": {"audit-policies", "policy", invalidPolicy, audited, "provided invalid audit policy: [rules[0].level"},
		"policy of another kind": {"audit-policies", "policy", validAuthorization, audited,
			`no kind "AuthorizationConfiguration" is registered`},
		"policy of no kind":           {"audit-policies", "policy", "a", audited, "failed to decode the provided audit policy"},
		"no policy":                   {"audit-policies", "other", validPolicy, audited, "missing audit policy key in policy ConfigMap data"},
		"empty policy":                {"audit-policies", "policy", "", audited, "audit policy in policy key is empty"},
		"valid authentication":        {"authentication-configuration", "config.yaml", validAuthentication, plain, ""},
		"no authentication":           {"authentication-configuration", "config.yaml", validPolicy, plain, `no kind "Policy" is registered`},
		"issuer of the specification": {"authentication-configuration", "config.yaml", validAuthentication, ownIssuer, "https://issuer.example"},
		"issuer of the status":        {"authentication-configuration", "config.yaml", validAuthentication, advertised, "https://issuer.example"},
		"issuer of the garden":        {"authentication-configuration", "config.yaml", managedIssuer, managed, "/shoots/uid/issuer"},
		"issuer of another":           {"authentication-configuration", "config.yaml", managedIssuer, plain, ""},
		"two for anonymous users": {"authentication-configuration", "config.yaml", anonymousAuthentication, anonymous,
			"legacy configuration enabled: s"},
		"one for anonymous users": {"authentication-configuration", "config.yaml", anonymousAuthentication, plain, ""},
		"valid authorization":     {"authorization-configuration", "config.yaml", validAuthorization, authorized("hook"), ""},
		"without its kubeconfig": {"authorization-configuration", "config.yaml", validAuthorization, authorized("x"),
			`webhook authorizer "hook" in shoot garden-dev/s`},
		"with a file": {"authorization-configuration", "config.yaml", connectedAuthorization, authorized("hook"),
			"connectionInfo is not allowed to be set"},
		"without a webhook": {"authorization-configuration", "config.yaml", builtInAuthorization, authorized("hook"),
			"provided invalid authorization"},
	} {
		t.Run(name, func(t *testing.T) {
			c := configMap(test.key, test.text)
			got, _ := newWorld(t, nil, append(garden, c)...).ask(test.webhook, request{obj: test.shoot})
			check(t, got, test.want)
			w := newWorld(t, nil, append(garden, test.shoot)...)
			before := c.DeepCopy()
			before.Data = map[string]string{test.key: "before"}
			got, response := w.ask(test.webhook, request{old: before, obj: c})
			check(t, got, test.want)
			if got != "" && response.Result.Code != 422 {
				t.Errorf("the code is %d", response.Result.Code)
			}
		})
	}
}

// TestConfigurationsAreLeftAlone checks the requests that no configuration is read for.
func TestConfigurationsAreLeftAlone(t *testing.T) {
	audited := func(change func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
		s := shoot("s", func(c *gardencorev1beta1.KubeAPIServerConfig) {
			c.AuditConfig = &gardencorev1beta1.AuditConfig{AuditPolicy: &gardencorev1beta1.AuditPolicy{
				ConfigMapRef: &corev1.ObjectReference{Name: "c"}}}
		})
		change(s)
		return s
	}
	same := audited(func(*gardencorev1beta1.Shoot) {})
	upgraded := audited(func(s *gardencorev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.36.0" })
	annotated := audited(func(s *gardencorev1beta1.Shoot) { s.Annotations = map[string]string{"a": "b"} })
	hibernated := audited(func(s *gardencorev1beta1.Shoot) {
		s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: ptr.To(true)}
	})
	const missing = "referenced audit policy ConfigMap garden-dev/c does not exist"
	for name, test := range map[string]struct {
		request request
		want    string
	}{
		"created":               {request{obj: same}, missing},
		"upgraded":              {request{old: same, obj: upgraded}, missing},
		"refers to it from now": {request{old: shoot("s", nil), obj: same}, missing},
		"annotated":             {request{old: same, obj: annotated}, ""},
		"hibernated":            {request{old: same, obj: hibernated}, ""},
		"being deleted":         {request{old: same, obj: deleting(upgraded.DeepCopy())}, ""},
		"without a policy":      {request{obj: shoot("s", nil)}, ""},
		"unrelated ConfigMap":   {request{old: configMap("policy", "a"), obj: configMap("policy", "b")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := newWorld(t, nil).ask("audit-policies", test.request)
			check(t, got, test.want)
		})
	}
	same.Name = "unchanged"
	got, _ := newWorld(t, nil, same).ask("audit-policies",
		request{old: configMap("policy", invalidPolicy), obj: configMap("policy", invalidPolicy)})
	check(t, got, "")
}
