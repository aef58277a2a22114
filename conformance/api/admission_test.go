package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// values is a JSON object.
type values = map[string]any

// attempt is a request whose answers are compared.
type attempt struct {
	about string
	request
}

// TestAdmissionController compares what the webhooks of Gardener's admission controller answer.
func TestAdmissionController(t *testing.T) {
	makeFixtures(t)
	all := slices.Concat(namespaceAttempts(), secretAttempts(), configurationAttempts(), restrictedAttempts(),
		seedAttempts(t), sizeAttempts())
	alike := 0
	seen := map[string]bool{}
	for _, a := range all {
		if seen[a.about] {
			t.Errorf("%s stands twice", a.about)
		}
		seen[a.about] = true
		separator := "?"
		if strings.Contains(a.path, "?") {
			separator = "&"
		}
		a.path += separator + "dryRun=All"
		answers, differing := compare(t, a.about, a.request)
		if len(differing) == 0 {
			alike++
		} else {
			t.Errorf("%s\n%s", a.about, strings.Join(differing, "\n"))
		}
		t.Logf("%s: %s", a.about, answers[0])
	}
	count(t, alike, len(all))
}

func secretsPath(namespace string) string { return "/api/v1/namespaces/" + namespace + "/secrets" }

const (
	configMapsPath = "/api/v1/namespaces/" + projectNamespace + "/configmaps"
	shootPath      = "/apis/core.gardener.cloud/v1beta1/namespaces/" + projectNamespace + "/shoots/diff"
	mergePatch     = "application/merge-patch+json"
)

var (
	restricted   = values{"gardener.cloud/update-restriction": "true"}
	domainLabels = values{"role": "internal-domain", "gardener.cloud/role": "internal-domain"}
)

func domain(name string) values {
	return values{"dns.gardener.cloud/provider": "local", "dns.gardener.cloud/domain": name}
}

func createOf(about string, u user, obj *unstructured.Unstructured) attempt {
	return attempt{about, request{user: u, method: http.MethodPost, path: pathOf(obj), body: obj.Object}}
}

func mergeOf(about string, u user, path string, patch values) attempt {
	return attempt{about, request{user: u, method: http.MethodPatch, path: path, contentType: mergePatch, body: patch}}
}

func deleteOf(about string, u user, path string) attempt {
	return attempt{about, request{user: u, method: http.MethodDelete, path: path}}
}

func patchOfShoot(spec values) request {
	return request{user: administrator, method: http.MethodPatch, path: shootPath, contentType: mergePatch, body: values{"spec": spec}}
}

func kubeAPIServer(config values) values { return values{"kubeAPIServer": config} }

func mustPatchShoot(t *testing.T, spec values) {
	t.Helper()
	answers, _ := compare(t, "", patchOfShoot(spec))
	for i, a := range answers {
		if a.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", both[i].name, a.Code, a.Message)
		}
	}
}

func namespaceAttempts() (all []attempt) {
	for _, name := range []string{projectNamespace, "garden", "other", "none"} {
		all = append(all, deleteOf("deletion of the namespace "+name, administrator, "/api/v1/namespaces/"+name))
	}
	return append(all, deleteOf("deletion of all namespaces of projects", administrator,
		"/api/v1/namespaces?labelSelector=gardener.cloud/role%3Dproject"))
}

func kubeconfigWith(user string) string {
	return `{"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "c", "cluster": {"server": "https://api.example.com"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "current-context": "c",
		"users": [{"name": "u", "user": {` + user + `}}]}`
}

func secretAttempts() (all []attempt) {
	for about, text := range map[string]string{
		"a token": kubeconfigWith(`"token": "t"`), "a password": kubeconfigWith(`"username": "u", "password": "p"`),
		"a certificate":                          kubeconfigWith(`"client-certificate-data": "YQ==", "client-key-data": "YQ=="`),
		"a file with a certificate":              kubeconfigWith(`"client-certificate": "/etc/passwd"`),
		"a file with a key":                      kubeconfigWith(`"client-key": "/etc/passwd"`),
		"a file with a token":                    kubeconfigWith(`"tokenFile": "/etc/passwd"`),
		"impersonation":                          kubeconfigWith(`"as": "admin", "token": "t"`),
		"groups":                                 kubeconfigWith(`"as-groups": ["system:masters"], "token": "t"`),
		"a program":                              kubeconfigWith(`"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "id", "interactiveMode": "Never"}`),
		"an auth provider":                       kubeconfigWith(`"auth-provider": {"name": "oidc", "config": {"a": "b"}}`),
		"an auth provider without configuration": kubeconfigWith(`"auth-provider": {"name": "oidc"}`),
		"nothing":                                "",
		"other text":                             "no kubeconfig", "another kind": `{"apiVersion": "v1", "kind": "Secret"}`,
		"a field of the wrong type": `{"apiVersion": "v1", "kind": "Config", "users": {}}`,
		"YAML":                      "apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user:\n    exec:\n      command: id\n",
	} {
		data := values{"stringData": values{"kubeconfig": text}}
		for _, namespace := range []string{projectNamespace, "garden", "other"} {
			all = append(all, createOf(fmt.Sprintf("a kubeconfig with %s in %s", about, namespace), administrator,
				object("Secret", namespace, "new", data)))
		}
		all = append(all, mergeOf("a kubeconfig with "+about+" in a Secret that is there", administrator,
			secretsPath(projectNamespace)+"/credentials", data))
	}
	authorizer := secretsPath(projectNamespace) + "/authorizer"
	all = append(all,
		mergeOf("no kubeconfig where an authorizer needs it", administrator, authorizer, values{"data": values{"kubeconfig": nil}}),
		mergeOf("an empty kubeconfig where an authorizer needs it", administrator, authorizer, values{"data": values{"kubeconfig": ""}}),
		mergeOf("a label where an authorizer needs the kubeconfig", administrator, authorizer, values{"metadata": values{"labels": values{"a": "b"}}}),
		deleteOf("deletion of a kubeconfig that an authorizer needs", administrator, authorizer),
		mergeOf("no kubeconfig where none is needed", administrator, secretsPath(projectNamespace)+"/credentials", values{"data": values{"kubeconfig": nil}}),
	)

	for _, labels := range []values{{"provider.shoot.gardener.cloud/other": "true"}, {"provider.shoot.gardener.cloud/local": nil},
		{"provider.shoot.gardener.cloud/local": "false"}, {"other": "label"}} {
		text, _ := json.Marshal(labels)
		patch := values{"metadata": values{"labels": labels}}
		all = append(all,
			mergeOf("the labels "+string(text)+" of a Secret with bindings", administrator, secretsPath(projectNamespace)+"/credentials", patch),
			mergeOf("the labels "+string(text)+" of a Secret without", administrator, secretsPath(projectNamespace)+"/authorizer", patch),
			mergeOf("the labels "+string(text)+" of an InternalSecret", administrator,
				"/apis/core.gardener.cloud/v1beta1/namespaces/"+projectNamespace+"/internalsecrets/diff", patch))
	}

	for _, namespace := range []string{"garden", "seed-diff", projectNamespace, "other"} {
		for about, annotations := range map[string]values{"all annotations": domain("new.example.com"), "no annotation": nil,
			"no domain": {"dns.gardener.cloud/provider": "local"}, "no provider": {"dns.gardener.cloud/domain": "example.com"}} {
			fields := values{"labels": domainLabels}
			if annotations != nil {
				fields["annotations"] = annotations
			}
			all = append(all, createOf(fmt.Sprintf("an internal domain with %s in %s", about, namespace), administrator,
				object("Secret", namespace, "new-domain", fields)))
		}
	}
	internal := secretsPath("garden") + "/domain"
	annotations := func(a values) values { return values{"metadata": values{"annotations": a}} }
	return append(all,
		mergeOf("another internal domain", administrator, internal, annotations(domain("new.example.com"))),
		mergeOf("the same internal domain", administrator, internal, annotations(values{"a": "b"})),
		mergeOf("another provider of the internal domain", administrator, internal, annotations(values{"dns.gardener.cloud/provider": "other"})),
		mergeOf("no internal domain any more", administrator, internal, annotations(values{"dns.gardener.cloud/domain": nil})),
		mergeOf("no label of the internal domain any more", administrator, internal, values{"metadata": values{"labels": values{"role": nil}}}),
		mergeOf("no role of the internal domain any more", administrator, internal, values{"metadata": values{"labels": values{"gardener.cloud/role": nil}}}),
		mergeOf("the labels of an internal domain", administrator, secretsPath("garden")+"/backup",
			values{"metadata": values{"labels": domainLabels, "annotations": domain("new.example.com")}}),
		deleteOf("deletion of the internal domain", administrator, internal),
		deleteOf("deletion of all Secrets with an internal domain", administrator, secretsPath("garden")+"?labelSelector=role%3Dinternal-domain"),
	)
}

func configurationAttempts() (all []attempt) {
	uses := map[string]func(configMap string) values{
		"an audit policy": func(name string) values {
			return values{"auditConfig": values{"auditPolicy": values{"configMapRef": values{"name": name}}}}
		},
		"authentication": func(name string) values { return values{"structuredAuthentication": values{"configMapName": name}} },
		"authorization": func(name string) values {
			return values{"structuredAuthorization": values{"configMapName": name,
				"kubeconfigs": []any{values{"authorizerName": "hook", "secretName": "authorizer"}}}}
		},
	}
	names := append(slices.Sorted(maps.Keys(configurations)), "none", "no-key")
	for about, use := range uses {
		for _, name := range names {
			all = append(all, attempt{fmt.Sprintf("%s as %s of a Shoot", name, about), patchOfShoot(values{"kubernetes": kubeAPIServer(use(name))})})
		}
	}
	for name, text := range configurations {
		for key, configMap := range map[string]string{"policy": "used", "config.yaml": "authorization"} {
			all = append(all, mergeOf(fmt.Sprintf("%s in the ConfigMap %s, which a Shoot uses", name, configMap), administrator,
				configMapsPath+"/"+configMap, values{"data": values{key: text}}))
		}
		all = append(all, mergeOf(name+" in a ConfigMap that no Shoot uses", administrator, configMapsPath+"/free",
			values{"data": values{"policy": text, "config.yaml": text}}))
	}
	return append(all, mergeOf("no key in a ConfigMap that a Shoot uses", administrator, configMapsPath+"/used", values{"data": nil}),
		deleteOf("deletion of a ConfigMap that a Shoot uses", administrator, configMapsPath+"/used"))
}

func restrictedAttempts() (all []attempt) {
	account := func(name string) user {
		return user{"system:serviceaccount:kube-system:" + name, []string{"system:masters"}}
	}
	users := map[string]user{
		"the administrator": administrator, "a gardenlet": gardenlet,
		"the garbage collector": account("generic-garbage-collector"), "gardener-internal": account("gardener-internal"),
		"another account": account("other"), "a self-hosted Shoot": {"gardener.cloud:system:shoot:garden-diff:diff",
			[]string{"gardener.cloud:system:shoots", "system:masters"}},
	}
	for about, u := range users {
		for kind, path := range map[string]string{"Secret": secretsPath(projectNamespace) + "/diff.monitoring",
			"ConfigMap": configMapsPath + "/diff.ca-kubelet"} {
			all = append(all,
				createOf(fmt.Sprintf("%s creates a restricted %s", about, kind), u, object(kind, projectNamespace, "new", values{"labels": restricted})),
				mergeOf(fmt.Sprintf("%s changes a restricted %s", about, kind), u, path, values{"metadata": values{"labels": values{"a": "b"}}}),
				mergeOf(fmt.Sprintf("%s removes the restriction of a %s", about, kind), u, path,
					values{"metadata": values{"labels": values{"gardener.cloud/update-restriction": nil}}}),
				deleteOf(fmt.Sprintf("%s deletes a restricted %s", about, kind), u, path))
		}
	}
	return all
}

// seedAttempts are about SeedRestriction, as the gardenlet of the seed diff.
func seedAttempts(t *testing.T) (all []attempt) {
	of := func(kind string) *unstructured.Unstructured {
		for _, obj := range read(t, objectsFile) {
			if obj.GetKind() == kind {
				return obj
			}
		}
		t.Fatalf("no %s", kind)
		return nil
	}
	with := func(obj *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
		obj = obj.DeepCopy()
		if err := unstructured.SetNestedField(obj.Object, value, path...); err != nil {
			t.Fatal(err)
		}
		return obj
	}
	named := func(obj *unstructured.Unstructured, name string) *unstructured.Unstructured {
		return with(obj, name, "metadata", "name")
	}
	lease := func(namespace, name string) *unstructured.Unstructured {
		obj := object("Lease", namespace, name, nil)
		obj.SetAPIVersion("coordination.k8s.io/v1")
		return obj
	}
	return []attempt{
		createOf("a Seed of its own name", gardenlet, of("Seed")),
		createOf("a Seed of another name", gardenlet, named(of("Seed"), "other")),
		createOf("a BackupBucket of its seed", gardenlet, named(of("BackupBucket"), "new")),
		createOf("a BackupBucket of another seed", gardenlet, named(with(of("BackupBucket"), "other", "spec", "seedName"), "new")),
		createOf("a BackupEntry of its seed", gardenlet, named(of("BackupEntry"), "new")),
		createOf("a BackupEntry of another seed", gardenlet, named(with(of("BackupEntry"), "other", "spec", "seedName"), "new")),
		createOf("a BackupEntry in a bucket of another seed", gardenlet, named(with(of("BackupEntry"), "other", "spec", "bucketName"), "new")),
		createOf("a ShootState of its Shoot", gardenlet, of("ShootState")),
		createOf("a ShootState of no Shoot", gardenlet, named(of("ShootState"), "none")),
		createOf("a Secret of its Shoot", gardenlet, object("Secret", projectNamespace, "diff.ssh-keypair", nil)),
		createOf("a Secret of no Shoot", gardenlet, object("Secret", projectNamespace, "none.ssh-keypair", nil)),
		createOf("another Secret in a project", gardenlet, object("Secret", projectNamespace, "other", nil)),
		createOf("a ConfigMap of its Shoot", gardenlet, object("ConfigMap", projectNamespace, "diff.ca-cluster", nil)),
		createOf("another ConfigMap in a project", gardenlet, object("ConfigMap", projectNamespace, "other", nil)),
		createOf("an InternalSecret of its Shoot", gardenlet, named(of("InternalSecret"), "diff.ca-client")),
		createOf("an InternalSecret of no Shoot", gardenlet, named(of("InternalSecret"), "none.ca-client")),
		createOf("the Lease of its seed", gardenlet, lease("gardener-system-seed-lease", "diff")),
		createOf("the Lease of another seed", gardenlet, lease("gardener-system-seed-lease", "other")),
		createOf("another Lease", gardenlet, lease(projectNamespace, "diff")),
		createOf("a Bastion", gardenlet, named(of("Bastion"), "new")),
		createOf("a ServiceAccount in its namespace", gardenlet, object("ServiceAccount", "seed-diff", "extension-new", nil)),
		createOf("a ServiceAccount in a project", gardenlet, object("ServiceAccount", projectNamespace, "new", nil)),
		deleteOf("deletion of its Seed", gardenlet, "/apis/core.gardener.cloud/v1beta1/seeds/diff"),
		deleteOf("deletion of its BackupBucket", gardenlet, "/apis/core.gardener.cloud/v1beta1/backupbuckets/diff"),
	}
}

func sizeAttempts() (all []attempt) {
	long := func(length int) values { return values{"stringData": values{"text": strings.Repeat("a", length)}} }
	users := map[string]user{
		"the administrator": administrator, "an unrestricted user": {"unlimited", []string{"system:masters"}},
		"an unrestricted account": {"system:serviceaccount:garden-diff:unlimited", []string{"system:masters"}},
	}
	for about, u := range users {
		for _, length := range []int{100, 1400, 4000} {
			for _, namespace := range []string{projectNamespace, "garden", "other"} {
				all = append(all, createOf(fmt.Sprintf("a Secret of %d bytes by %s in %s", length, about, namespace), u,
					object("Secret", namespace, "large", long(length))))
			}
			all = append(all, mergeOf(fmt.Sprintf("a Shoot with %d bytes more by %s", length, about), u, shootPath,
				values{"metadata": values{"annotations": values{"text": strings.Repeat("a", length)}}}))
		}
	}
	for _, name := range []string{"new", "diff"} {
		all = append(all, createOf("the SecretBinding "+name, administrator, secretBinding(name)))
	}
	return all
}

func secretBinding(name string) *unstructured.Unstructured {
	binding := object("SecretBinding", projectNamespace, name, values{"provider": values{"type": "local"},
		"secretRef": values{"name": "credentials", "namespace": projectNamespace}})
	binding.SetAPIVersion("core.gardener.cloud/v1beta1")
	return binding
}
