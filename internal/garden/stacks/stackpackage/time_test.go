package stackpackage

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackagesOfTheTime reads small copies of the shapes that packages of 2019 and 2020 had. Those that ask for more than a
// stack is given are refused with all reasons at once; what stacks do not have is left aside with a warning.
func TestPackagesOfTheTime(t *testing.T) {
	provider := readTestdata(t, "provider")
	_, err := Read(provider)
	crdFile := "resources/cache.example.io/cacheclass.crd.yaml: CRD cacheclasses.cache.example.io: "
	wantReasons(t, err,
		"rbac.yaml is not allowed: the permissions of a stack are implicit, they follow from its CRDs and dependsOn: remove the file",
		"app.yaml has no permissionScope: it must be Cluster, if the controller works in all namespaces, or Namespaced, if it works in its own",
		`app.yaml: dependsOn "*.cache.example.io/v1alpha1" is not allowed: the plural must be a name of lower case letters, digits and `+
			"hyphens; instead of a wildcard, name each CRD that the controller uses",
		`app.yaml: dependsOn "*.database.example.io/v1alpha1" is not allowed: the plural must be a name of lower case letters, digits and `+
			"hyphens; instead of a wildcard, name each CRD that the controller uses",
		"install.yaml: spec.template.spec.serviceAccountName is not allowed: the controller has the ServiceAccount of its Stack",
		"install.yaml: the container stack-example-controller has no image: that of the package is not filled in, name one",
		crdFile+"its scope must be Namespaced: stacks have no access to cluster-scoped resources",
		crdFile+"version v1alpha1 has no schema: describe its fields with spec.versions[].schema, or in v1beta1 with spec.validation",
	)
	// With these changes it is accepted.
	delete(provider, rbacFile)
	change := func(files Files, name, old, new string) {
		t.Helper()
		if !bytes.Contains(files[name], []byte(old)) {
			t.Fatalf("%s has no %q", name, old)
		}
		files[name] = bytes.ReplaceAll(files[name], []byte(old), []byte(new))
	}
	change(provider, appFile, "license:", "permissionScope: Cluster\nlicense:")
	change(provider, appFile, "'*.", "'instances.")
	change(provider, installFile, "      serviceAccountName: stack-example\n", "")
	change(provider, installFile, "        env:", "        image: example.org/stack-example:v0.2.0\n        env:")
	change(provider, "resources/cache.example.io/cacheclass.crd.yaml", "scope: Cluster",
		"scope: Namespaced\n  validation: {openAPIV3Schema: {type: object}}")
	p, err := Read(provider)
	if err != nil {
		t.Fatal(err)
	}
	wantWarnings(t, p, "packageType Provider is left aside", "fields that its schema does not have are dropped")
	if p.App.Version != "0.2" || len(p.DependsOn) != 3 || p.CRDs[0].Annotations[annotation+"resource-title"] != "Cache class" {
		t.Errorf("%+v, dependsOn %v, annotations %v", p.App, p.DependsOn, p.CRDs[0].Annotations)
	}

	application := readTestdata(t, "application")
	_, err = Read(application)
	const group = "blog.samples.stacks.crossplane.io"
	file := "resources/" + group + "_bloginstances.crd.yaml"
	wantReasons(t, err, file+": CRD bloginstances."+group+": stacks.crossplane.io and the groups below it are not those of a stack: "+
		"that samples have groups below it is not supported, choose a domain of your own")
	change(application, file, group, "blog.example.org")
	if p, err = Read(application); err != nil {
		t.Fatal(err)
	}
	wantWarnings(t, p, "behavior.yaml is left aside: templates are not supported", "packageType Application is left aside",
		"there is no install.yaml", "fields that its schema does not have are dropped")
}

func readTestdata(t *testing.T, name string) Files {
	t.Helper()
	files, err := ReadDir(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func wantReasons(t *testing.T, err error, reasons ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("the package is accepted")
	}
	want := reasons[0]
	if len(reasons) > 1 {
		want = "8 reasons:\n- " + strings.Join(reasons, "\n- ")
	}
	if err.Error() != want {
		t.Errorf("it is refused for\n%v\nnot for\n%s", err, want)
	}
}

func wantWarnings(t *testing.T, p *Package, says ...string) {
	t.Helper()
	if len(p.Warnings) != len(says) {
		t.Errorf("there are the warnings %q", p.Warnings)
		return
	}
	for i, warning := range p.Warnings {
		if !strings.Contains(warning, says[i]) {
			t.Errorf("the warning is %q; it should say %q", warning, says[i])
		}
	}
}

// TestWordsOfRefusals checks that wrong values are described in the words of YAML.
func TestWordsOfRefusals(t *testing.T) {
	testRefusals(t, map[string]refusal{
		"text for a list":   {map[string]string{appFile: app + "keywords: storage\n"}, "app.yaml: keywords must be a list, and is a text"},
		"list for a text":   {map[string]string{appFile: app + "company: [a]\n"}, "app.yaml: company must be a text, and is a list"},
		"list for the file": {map[string]string{appFile: "[]"}, "app.yaml: the file must be an object, and is a list"},
		"text for a number": {inController("  selector:", "  replicas: many\n  selector:"),
			"install.yaml: spec.replicas must be a number, and is a text"},
		"object for a truth":   {inCRD("storage: true", "storage: {}"), "versions.storage must be true or false, and is an object"},
		"unknown key":          {map[string]string{appFile: app + "permissions: []\n"}, `app.yaml: unknown field "permissions": remove it`},
		"unknown keys":         {map[string]string{appFile: app + "permissions: []\nroles: []\n"}, `app.yaml: unknown field "roles": remove it`},
		"line break in a name": {inController("name: controller", `name: "a\n- b"`), "the name \"a\ufffd- b\" of a container"},
		"unknown key in a CRD": {inCRD("scope: Namespaced", "scope: Namespaced\n  webhooks: []"), `unknown field "webhooks": remove it`},
	})
	for _, changes := range []map[string]string{
		{appFile: app + "keywords: storage\n"}, {appFile: "[]"}, {appFile: "{"}, {appFile: app + "version: 1\n"},
		inController("  selector:", "  replicas: many\n  selector:"), inContainer("env2: []"), inContainer("resources: {limits: {cpu: x}}"),
		inContainer("ports: [{containerPort: {}}]"),
	} {
		_, err := Read(valid(changes))
		if err == nil {
			t.Errorf("%v is accepted", changes)
			continue
		}
		for _, words := range []string{"Go ", "json:", "unmarshal", "map[", "interface", "<nil>"} {
			if strings.Contains(err.Error(), words) {
				t.Errorf("%v: the message has %q", err, words)
			}
		}
	}
}

// TestManyReasons checks that a package with very many faults gets a message of limited size.
func TestManyReasons(t *testing.T) {
	files := valid(nil)
	for i := range 300 {
		files[strings.Repeat("x", i+1)] = nil
	}
	_, err := Read(files)
	wantError(t, err, "300 reasons:")
	wantError(t, err, "- and 260 more")
	if n := strings.Count(err.Error(), "\n"); n != maxReasons+1 {
		t.Errorf("the message has %d lines", n)
	}
}
