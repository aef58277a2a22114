package stacks

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

// hostile returns packages that ask for more than a stack is given, and why they are refused.
func hostile(t *testing.T) map[string]struct {
	files stackFiles
	says  string
} {
	valid := bucketStack("hostile.example.org", "Namespaced", "0.1")
	type refused = struct {
		files stackFiles
		says  string
	}
	pod := func(field string) stackFiles {
		return valid.replace(t, "install.yaml", "      containers:", "      "+field+"\n      containers:")
	}
	container := func(field string) stackFiles {
		return valid.replace(t, "install.yaml", "{name: controller,", "{name: controller, "+field+",")
	}
	depends := func(crd string) stackFiles {
		return valid.with("app.yaml", valid["app.yaml"]+fmt.Sprintf("dependsOn: [{crd: %q}]\n", crd))
	}
	group := func(group string) stackFiles {
		return valid.with(crdPath, strings.ReplaceAll(valid[crdPath], "hostile.example.org", group))
	}
	return map[string]refused{
		"rbac.yaml":               {valid.with("rbac.yaml", "rules: []"), "permissions of a stack are implicit"},
		"another file":            {valid.with("run.sh", "#!/bin/sh"), "no file of a package"},
		"app.yaml is no YAML":     {valid.with("app.yaml", "{"), "app.yaml"},
		"unknown scope":           {valid.replace(t, "app.yaml", "Namespaced", "Everything"), "permissionScope"},
		"alias bomb":              {valid.with("app.yaml", valid["app.yaml"]+"keywords: &a [x]\nreadme: *a\n"), "anchors and aliases"},
		"large file":              {valid.with("resources/ui-schema.yaml", strings.Repeat("#", 2<<20)), "1048576"},
		"CRD of core":             {group("apps"), "groups without a dot"},
		"CRD of Kubernetes":       {group("rbac.authorization.k8s.io"), "k8s.io"},
		"CRD of KWOK":             {group("kwok.x-k8s.io"), "x-k8s.io"},
		"CRD of Gardener":         {group("core.gardener.cloud"), "gardener.cloud"},
		"CRD of stacks":           {group("stacks.crossplane.io"), "stacks.crossplane.io"},
		"CRD of another stack":    {group("taken.example.org"), "is of the group of another stack"},
		"CRD that is not its own": {group("foreign.example.org"), "exists already, and is not one of a stack"},
		"cluster-scoped CRD":      {valid.replace(t, crdPath, "scope: Namespaced", "scope: Cluster"), "scope must be Namespaced"},
		"conversion webhook": {valid.replace(t, crdPath, "scope: Namespaced", `scope: Namespaced
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://example.org"}}}`),
			"conversion webhook"},
		"category that hides Pods": {valid.replace(t, crdPath, "singular: bucket}", "singular: bucket, categories: [pods]}"),
			"the category pods, which hides the resource pods"},
		"short name that hides Shoots": {valid.replace(t, crdPath, "singular: bucket}", "singular: bucket, shortNames: [shoot]}"),
			"which hides the resource shoots.core.gardener.cloud"},
		"plural that hides Secrets": {valid.replace(t, crdPath, "buckets", "secrets"), "the plural secrets, which hides the resource secrets"},
		"homoglyph in a group":      {group("hоstile.example.org"), "DNS name"},
		"Secrets":                   {depends("secrets"), "built into Kubernetes"},
		"Shoots":                    {depends("shoots.core.gardener.cloud"), "gardener.cloud"},
		"wildcard of a group":       {depends("*.example.org"), "plural must be a name"},
		"all groups":                {depends("*.*"), "plural must be a name"},
		"homoglyph in dependsOn":    {depends("buckеts.example.org"), "plural must be a name"},
		"another ServiceAccount":    {pod("serviceAccountName: default"), "serviceAccountName"},
		"another namespace": {valid.replace(t, "install.yaml", "metadata: {name: bucket-controller}",
			"metadata: {name: c, namespace: kube-system}"), "namespace of its Stack"},
		"network of the host":   {pod("hostNetwork: true"), "hostNetwork"},
		"processes of the host": {pod("hostPID: true"), "hostPID"},
		"files of the host":     {pod("volumes: [{name: v, hostPath: {path: /}}]"), "hostPath"},
		"node":                  {pod("nodeName: garden"), "nodeName"},
		"token for others": {
			pod("volumes: [{name: v, projected: {sources: [{serviceAccountToken: {audience: other, path: t}}]}}]"), "audience"},
		"privileged":       {container("securityContext: {privileged: true}"), "privileged"},
		"capabilities":     {container("securityContext: {capabilities: {add: [SYS_ADMIN]}}"), "add"},
		"port of the host": {container("ports: [{containerPort: 22, hostPort: 22}]"), "hostPort"},
		"a DaemonSet":      {valid.replace(t, "install.yaml", "kind: Deployment", "kind: DaemonSet"), "install.yaml"},
		"two controllers":  {valid.with("install.yaml", valid["install.yaml"]+"---\n"+valid["install.yaml"]), "more than one document"},
	}
}

// TestHostilePackages: packages that ask for more are refused with the reason, and leave nothing behind ("Allowed Resource
// Access").
func TestHostilePackages(t *testing.T) {
	t.Parallel()
	shared.namespace(t, "hostile")
	shared.namespace(t, "taken")
	shared.install(t, namespaceInstall, "taken", "buckets", shared.write(t, "taken", bucketStack("taken.example.org", "Namespaced", "0.1")))
	shared.ready(t, namespaceInstall, "taken", "buckets", "0.1")
	foreign := definitionObject(t, "foreign.example.org")
	_, err := shared.dyn.Resource(crdResource).Create(t.Context(), foreign, created)
	must(t, err)
	for i, name := range slices.Sorted(maps.Keys(hostile(t))) {
		test := hostile(t)[name]
		install := fmt.Sprintf("hostile-%d", i)
		shared.install(t, namespaceInstall, "hostile", install, shared.write(t, install, test.files))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared.becomes(t, namespaceInstall, "hostile", install, "Synced", "False", test.says)
			shared.exists(t, append(objectsOf(namespaceInstall, "hostile", install), place{crdResource, "", "buckets.hostile.example.org"}), false)
			shared.uninstall(t, namespaceInstall, "hostile", install)
		})
	}
}

// TestPlacesOfOthers: no stack is installed where ServiceAccounts are those of other parts of the landscape, or with a name that
// they know. The command says so before it creates the namespace.
func TestPlacesOfOthers(t *testing.T) {
	t.Parallel()
	shared.namespace(t, "places")
	reference := shared.write(t, "places", bucketStack("places.example.org", "Namespaced", "0.1"))
	for _, p := range []struct{ namespace, name string }{{"garden", "places"}, {"gardener-system-public", "places"}, {"kube-system", "places"},
		{"places", "extension-x"}, {"places", "default"}} {
		shared.install(t, namespaceInstall, p.namespace, p.name, reference)
		shared.becomes(t, namespaceInstall, p.namespace, p.name, "Synced", "False", "choose another one")
		shared.exists(t, []place{{stacks, p.namespace, p.name}, {rbacResource("roles"), p.namespace, p.name}}, false)
		shared.uninstall(t, namespaceInstall, p.namespace, p.name)
	}
	folder := filepath.Join(t.TempDir(), "package")
	bucketStack("places.example.org", "Cluster", "0.1").writeTo(t, folder)
	r := suite.Gardenlite(t, shared.dir, "stack", "install", folder, "-n", "seed-places", "--as", "extension-x")
	if r.Code == 0 || !strings.Contains(r.Stderr, "no stack can be installed in the namespace seed-places") {
		t.Errorf("exit status %d, errors %q", r.Code, r.Stderr)
	}
	if _, err := shared.kube.CoreV1().Namespaces().Get(t.Context(), "seed-places", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is the namespace: %v", err)
	}
}

// TestIdentitiesOfOthers: a stack cannot take the name of an existing ServiceAccount, and with it its rights.
func TestIdentitiesOfOthers(t *testing.T) {
	t.Parallel()
	shared.namespace(t, "identities")
	_, err := shared.kube.CoreV1().ServiceAccounts("identities").Create(
		t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "powerful"}}, created)
	must(t, err)
	shared.install(t, clusterInstall, "identities", "powerful",
		shared.write(t, "identities", bucketStack("identities.example.org", "Cluster", "0.1")))
	shared.becomes(t, clusterInstall, "identities", "powerful", "Synced", "False", "the ServiceAccount powerful exists already")
	shared.exists(t, []place{{stacks, "identities", "powerful"}, {crdResource, "", "buckets.identities.example.org"}}, false)
	deployments, err := shared.kube.AppsV1().Deployments("identities").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(deployments.Items) > 0 {
		t.Errorf("there are Deployments: %v", deployments.Items)
	}
	shared.uninstall(t, clusterInstall, "identities", "powerful")
	_, err = shared.kube.CoreV1().ServiceAccounts("identities").Get(t.Context(), "powerful", metav1.GetOptions{})
	must(t, err)
}
