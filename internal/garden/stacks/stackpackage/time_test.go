package stackpackage

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPackagesOfTheTime reads small copies of the shapes that packages of 2019 and 2020 had. Those that ask for more
// than a stack is given are refused with all reasons at once, and accepted with the changes for which these ask; what
// stacks do not have is left aside with a warning.
func TestPackagesOfTheTime(t *testing.T) {
	const (
		clusterScoped = "its scope must be Namespaced: stacks have no access to cluster-scoped resources"
		noPlural      = "the plural must be a name of lower case letters, digits and hyphens"
		noWildcard    = "; instead of a wildcard, name each CRD that the controller uses"
		ofSamples     = "stacks.crossplane.io and the groups below it are not those of a stack: that samples have groups " +
			"below it is not supported, choose a domain of your own"
		svg     = `<svg xmlns="http://www.w3.org/2000/svg"`
		dropped = "fields that its schema does not have are dropped"

		classFile = "resources/cache.example.io/cacheclass.crd.yaml"
		netFiles  = "resources/net.example.io/"
		blogFile  = "resources/blog.samples.stacks.crossplane.io_bloginstances.crd.yaml"
		boardFile = "resources/boards.stacks.crossplane.io/v1alpha1/board/crd.yaml"
		noteFile  = "resources/notes.stacks.crossplane.io/v1alpha1/note/note.crd.yaml"
	)
	dependsOn := func(crd, why string) string { return `app.yaml: dependsOn "` + crd + `" is not allowed: ` + why }
	for name, test := range map[string]struct {
		reasons  []string
		changes  []change
		warnings []string
		version  string
		// dependsOn are the CRDs to which it gets access, annotations are some of those of its first CRD.
		dependsOn   []string
		annotations map[string]string
	}{
		// infrastructure providers
		"provider": {
			version: "0.2",
			reasons: []string{
				"rbac.yaml is not allowed: the permissions of a stack are implicit, they follow from its CRDs and dependsOn: " +
					"remove the file",
				"app.yaml has no permissionScope: it must be Cluster, if the controller works in all namespaces, or " +
					"Namespaced, if it works in its own",
				dependsOn("*.cache.example.io/v1alpha1", noPlural+noWildcard),
				dependsOn("*.database.example.io/v1alpha1", noPlural+noWildcard),
				"install.yaml: spec.template.spec.serviceAccountName is not allowed: the controller has the ServiceAccount " +
					"of its Stack",
				"install.yaml: the container stack-example-controller has no image: that of the package is not filled in, " +
					"name one",
				classFile + ": CRD cacheclasses.cache.example.io: " + clusterScoped,
				classFile + ": CRD cacheclasses.cache.example.io: version v1alpha1 has no schema: describe its fields with " +
					"spec.versions[].schema, or in v1beta1 with spec.validation",
			},
			changes: []change{{file: rbacFile}, {appFile, "license:", "permissionScope: Cluster\nlicense:"},
				{appFile, "'*.", "'instances."}, {installFile, "      serviceAccountName: stack-example\n", ""},
				{installFile, "        env:", "        image: example.org/stack-example:v0.2.0\n        env:"},
				{classFile, "scope: Cluster", "scope: Namespaced\n  validation: {openAPIV3Schema: {type: object}}"}},
			warnings:    []string{"packageType Provider is left aside", dropped},
			dependsOn:   []string{"claims.core.example.io", "instances.cache.example.io", "instances.database.example.io"},
			annotations: map[string]string{"resource-title": "Cache class"},
		},
		"infrastructure": {
			version: "0.3",
			reasons: []string{
				netFiles + "networkclass.crd.yaml: CRD networkclasses.net.example.io: " + clusterScoped,
				netFiles + "provider.crd.yaml: CRD providers.net.example.io: " + clusterScoped,
			},
			changes: []change{{netFiles + "networkclass.crd.yaml", "scope: Cluster", "scope: Namespaced"},
				{netFiles + "provider.crd.yaml", "scope: Cluster", "scope: Namespaced"}},
			warnings: []string{"networkclaims.net.example.io: " + dropped, "networkclasses.net.example.io: " + dropped,
				"providers.net.example.io: " + dropped},
			annotations: map[string]string{"group-title": "Networks"},
		},
		"wildcards": {
			version: "0.5",
			reasons: []string{
				dependsOn("*", noPlural+noWildcard),
				dependsOn("*.example.io/v1alpha1", noPlural+noWildcard),
				dependsOn("*.*.example.io/v1alpha1", noPlural+noWildcard),
				dependsOn("databases.*.example.io/v1beta1", "the group must be a DNS name in lower case letters"+noWildcard),
				dependsOn("secrets/v1", "it must be PLURAL.GROUP, and groups without a dot are built into Kubernetes"),
				dependsOn("stackinstalls.stacks.crossplane.io/v1alpha1",
					"stacks.crossplane.io and the groups below it are not those of a stack"),
			},
			changes: []change{{appFile, "- crd: '*'\n", ""}, {appFile, "*.*.", "instances.cache."},
				{appFile, "*.", "instances."}, {appFile, "- crd: 'secrets/v1'\n", ""},
				{appFile, "- crd: 'stackinstalls.stacks.crossplane.io/v1alpha1'\n", ""}},
			dependsOn: []string{"claims.core.example.io", "databases.instances.example.io", "instances.cache.example.io",
				"instances.example.io"},
		},
		// applications and samples
		"application": {
			version: "0.1",
			reasons: []string{blogFile + ": CRD bloginstances.blog.samples.stacks.crossplane.io: " + ofSamples},
			changes: []change{{blogFile, "blog.samples.stacks.crossplane.io", "blog.example.org"}},
			warnings: []string{"behavior.yaml is left aside: templates are not supported",
				"packageType Application is left aside", "there is no install.yaml", dropped},
			dependsOn:   []string{"mysqlinstances.database.example.io"},
			annotations: map[string]string{"ui-schema": "version: 0.4\nconfigSections:\n- title: Configuration\n"},
		},
		"templates": {
			version: "0.6",
			warnings: []string{"behavior.yaml is left aside: templates are not supported, so that nothing acts on instances",
				"there is no install.yaml: the stack has no controller"},
			dependsOn: []string{"caches.cache.example.io", "databases.database.example.io"},
		},
		"typed": {
			version: "0.8",
			warnings: []string{"packageType Application is left aside",
				`the package "example/provider-databases" grants nothing`,
				`the package "example/provider-caches" grants nothing`, "is not structural, so every field is accepted"},
			dependsOn:   []string{"databases.database.example.io"},
			annotations: map[string]string{"stack-title": "Example Wiki", "icon-data-uri": dataOf(svg + "/>\n")},
		},
		"tree": {
			version: "0.4",
			reasons: []string{boardFile + ": CRD boards.boards.stacks.crossplane.io: " + ofSamples,
				noteFile + ": CRD notes.notes.stacks.crossplane.io: " + ofSamples},
			changes: []change{{boardFile, "boards.stacks.crossplane.io", "boards.example.org"},
				{noteFile, "notes.stacks.crossplane.io", "notes.example.org"}},
			warnings: []string{"there is no install.yaml"},
			annotations: map[string]string{"group-title": "Boards", "resource-title-plural": "Boards",
				"ui-schema":     "version: 0.4\nconfigSections:\n- title: Board\n",
				"icon-data-uri": dataOf(svg + "><title>boards</title></svg>\n")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := readTestdata(t, name)
			if len(test.reasons) > 0 {
				_, err := Read(files)
				wantReasons(t, err, test.reasons...)
			}
			for _, c := range test.changes {
				c.apply(t, files)
			}
			p, err := Read(files)
			if err != nil {
				t.Fatal(err)
			}
			wantWarnings(t, p, test.warnings...)
			if p.App.Version != test.version || !slices.Equal(p.DependsOn, test.dependsOn) {
				t.Errorf("version %s, depends on %v", p.App.Version, p.DependsOn)
			}
			for key, want := range test.annotations {
				if got := p.CRDs[0].Annotations[annotation+key]; got != want {
					t.Errorf("the annotation %s is %q", key, got)
				}
			}
		})
	}
}

// change replaces a text in a file of a package; without one, it removes the file.
type change struct{ file, old, new string }

func (c change) apply(t *testing.T, files Files) {
	t.Helper()
	if !bytes.Contains(files[c.file], []byte(c.old)) {
		t.Fatalf("%s has no %q", c.file, c.old)
	}
	if c.old == "" {
		delete(files, c.file)
		return
	}
	files[c.file] = bytes.ReplaceAll(files[c.file], []byte(c.old), []byte(c.new))
}

func dataOf(svg string) string {
	return "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(svg))
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
		want = fmt.Sprintf("%d reasons:\n- %s", len(reasons), strings.Join(reasons, "\n- "))
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
