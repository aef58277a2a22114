package gardenapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// inLandscape runs the binary for the suite's landscape.
func inLandscape(t *testing.T, args ...string) result {
	t.Helper()
	return gardenlite(t, suite.DataDir(), args...)
}

// prepareAccess creates a seed of that name, and a shoot on it in the namespace garden-NAME. It waits until the
// graph has them.
func prepareAccess(t *testing.T, name string) {
	t.Helper()
	prepareProject(t, name)
	kubectl(t, "", "apply", "--server-side", "-f",
		manifestOf(t, name, "CloudProfile", "ExposureClass", "Project", "SecretBinding", "CredentialsBinding", "Seed", "Shoot")).OK(t)
	eventually(t, waitTimeout, func(context.Context) error {
		if r := inLandscape(t, "graph", "shoot", "garden-"+name+"/"+name); !strings.Contains(r.Stdout, "→ Seed "+name) {
			return fmt.Errorf("the graph: %s%s", r.Stdout, r.Stderr)
		}
		return nil
	})
}

// TestAccessCLIExplain asks about allowed and refused requests of several users. Each answer has its exit status.
func TestAccessCLIExplain(t *testing.T) {
	const name = "explained"
	prepareAccess(t, name)
	for _, namespace := range []string{"seed-explained", "seed-elsewhere"} {
		createNamespace(t, namespace, nil)
	}
	const secret = "garden-explained/credentials"
	extension := []string{"--as-extension", "seed-explained/extension-x"}
	as := func(seed string) []string { return []string{"--as-seed", seed} }
	for _, test := range []struct {
		user  []string
		asks  string
		code  int
		shows []string
	}{
		{as(name), "get secret " + secret, 0, []string{"yes, by SeedAuthorizer: get secrets " + secret,
			"gardenlet of seed explained", "does not allow it", "Path", "→ Shoot garden-explained/explained", "→ Seed explained"}},
		{as(name), "get secret credentials -n garden-explained", 0, []string{"→ Seed explained"}},
		{as("other"), "get secret " + secret, 1,
			[]string{"no: get secrets " + secret, "it leads to Seed explained", "Leads to", "there is no Seed other"}},
		{as(name), "get secret garden-explained/nothing", 1, []string{"not in the graph", "there is no such object"}},
		{as(name), "get cloudprofile explained", 0,
			[]string{"yes, by RBAC", `ClusterRoleBinding "gardener.cloud:system:read-global-resources"`, "Path"}},
		{as(name), "get shoots garden-explained/explained", 0, []string{"allowed by the graph", "→ Seed explained"}},
		{as(name), "list shoots -l name.seed.gardener.cloud/explained=true", 0, []string{"the selector is for the objects of the seed"}},
		{as(name), "list shoots -l name.seed.gardener.cloud/explained!=true", 1,
			[]string{"label selector name.seed.gardener.cloud/explained=true"}},
		{extension, "watch bastions --field-selector spec.seedName=explained", 0, []string{"the selector is for the objects of the seed"}},
		{extension, "watch bastions --field-selector spec.seedName=elsewhere", 1, []string{"field selector spec.seedName=explained"}},
		{as(name), "patch shoots/status garden-explained/explained", 0,
			[]string{"shoots.core.gardener.cloud/status", "SeedRestriction then looks"}},
		{as("other"), "update shoot garden-explained/explained", 1, []string{"it leads to Seed explained"}},
		{as(name), "list cb garden-explained/", 1, []string{"in namespace garden-explained", "add the field selector metadata.name"}},
		{as(name), "list credentialsbindings.security.gardener.cloud garden-explained/explained", 0,
			[]string{"field selector metadata.name=explained", "→ Seed explained"}},
		{as(name), "watch secrets seed-explained/", 0, []string{"secrets in seed-explained"}},
		{as(name), "watch secrets seed-elsewhere/", 1, []string{"it is for secrets in seed-explained"}},
		{as(name), "create secret garden-explained/x", 0, []string{"does not carry the object's name", "SeedRestriction then looks"}},
		{as(name), "create csr/seedclient x", 0, nil},
		{as(name), "gett shoot garden-explained/explained", 1, []string{`no verb "gett"`}},
		{as(name), "get quotas garden-explained/x", 1, []string{"there are no rules for quotas"}},
		{extension, "update lease seed-explained/x", 0, []string{"extension on seed explained", "leases in seed-explained"}},
		{extension, "update lease gardener-system-seed-lease/explained", 1, nil},
		{extension, "get secret " + secret, 0, []string{"→ Seed explained"}},
		{[]string{"--as-extension", "seed-elsewhere/no-extension"}, "get secret " + secret, 1, []string{"neither a gardenlet nor an extension"}},
	} {
		t.Run(strings.Join(test.user, " ")+" "+test.asks, func(t *testing.T) {
			t.Parallel()
			r := inLandscape(t, append(append([]string{"access", "explain"}, test.user...), strings.Fields(test.asks)...)...)
			if r.Code != test.code || r.Stderr != "" {
				t.Errorf("exit status %d, expected %d: %s%s", r.Code, test.code, r.Stdout, r.Stderr)
			}
			r.Shows(t, test.shows...)
			if answer, _, _ := strings.Cut(r.Stdout, ":"); (answer == "no") != (test.code == 1) {
				t.Errorf("the answer is %q, the exit status %d", answer, test.code)
			}
			if strings.Contains(r.Stdout, "says otherwise") {
				t.Errorf("the API server says otherwise: %s", r.Stdout)
			}
		})
	}
}

// TestAccessCLIExplainForPrograms reads the answers as JSON and YAML.
func TestAccessCLIExplainForPrograms(t *testing.T) {
	prepareAccess(t, "exjson")
	args := []string{"access", "explain", "--as-seed", "exjson", "get", "secret", "garden-exjson/credentials"}
	var e struct {
		Allowed        bool
		By             string
		SeedAuthorizer struct {
			Allowed bool
			Path    []struct{ Kind, Namespace, Name string }
		}
		RBAC, Garden struct{ Allowed bool }
	}
	must(t, json.Unmarshal([]byte(inLandscape(t, append(args, "-o", "json")...).OK(t).Stdout), &e))
	path := e.SeedAuthorizer.Path
	if !e.Allowed || e.By != "SeedAuthorizer" || !e.Garden.Allowed || e.RBAC.Allowed || len(path) < 3 ||
		path[0].Kind != "Secret" || path[len(path)-1].Kind != "Seed" {
		t.Errorf("%+v", e)
	}
	inLandscape(t, append(args, "-o", "yaml")...).OK(t).Shows(t, "by: SeedAuthorizer")
	args[3] = "other"
	if r := inLandscape(t, append(args, "-o", "json")...); r.Code != 1 || !strings.Contains(r.Stdout, `"allowed": false`) || r.Stderr != "" {
		t.Errorf("exit status %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// TestAccessCLIFollowsChanges asks again after the path to the seed is gone, and is told where it ends now.
func TestAccessCLIFollowsChanges(t *testing.T) {
	prepareAccess(t, "unbound")
	ask := []string{"access", "explain", "--as-seed", "unbound", "get", "secret", "garden-unbound/credentials"}
	inLandscape(t, ask...).OK(t)
	kubectl(t, "", "-n", "garden-unbound", "annotate", "shoot", "unbound", "confirmation.gardener.cloud/deletion=true").OK(t)
	kubectl(t, "", "-n", "garden-unbound", "delete", "shoot", "unbound", "--timeout=20s").OK(t)
	eventually(t, waitTimeout, func(context.Context) error {
		if r := inLandscape(t, ask...); r.Code != 1 || !strings.Contains(r.Stdout, "Leads to        Secret garden-unbound/credentials") ||
			!strings.Contains(r.Stdout, "and from there to no seed") {
			return fmt.Errorf("exit status %d: %s%s", r.Code, r.Stdout, r.Stderr)
		}
		return nil
	})
}

// TestAccessCLIMatrix tries every request of a gardenlet and of an extension: all answers are as the rules say.
func TestAccessCLIMatrix(t *testing.T) {
	prepareAccess(t, "matrix")
	type matrix struct {
		Tried         int
		Disagreements []string
		Rows          []struct {
			Resource, Subresource, Namespace, Name string
			Verbs                                  map[string]string
			Objects                                *int
		}
	}
	read := func(args ...string) (m matrix) {
		must(t, json.Unmarshal([]byte(inLandscape(t, append(append([]string{"access", "matrix"}, args...), "-o", "json")...).OK(t).Stdout), &m))
		if len(m.Disagreements) > 0 || m.Tried < 500 {
			t.Errorf("%d tried; otherwise: %v", m.Tried, m.Disagreements)
		}
		return m
	}
	check := func(m matrix, resource, namespace, name, verb, want string) {
		t.Helper()
		for _, r := range m.Rows {
			at, subresource, _ := strings.Cut(resource, "/")
			if r.Resource == at && r.Subresource == subresource && r.Namespace == namespace && r.Name == name {
				if r.Verbs[verb] != want {
					t.Errorf("%s %s %s/%s: %q, expected %q", verb, resource, namespace, name, r.Verbs[verb], want)
				}
				if want == "graph" && (r.Objects == nil || *r.Objects == 0) {
					t.Errorf("%s: no objects lead to the seed", resource)
				}
				return
			}
		}
		t.Errorf("no row for %s %s/%s", resource, namespace, name)
	}
	gardenlet := read("--as-seed", "matrix")
	check(gardenlet, "secrets", "", "", "get", "graph")
	check(gardenlet, "secrets", "", "", "list", "none")
	check(gardenlet, "secrets", "", "", "create", "within")
	check(gardenlet, "secrets", "garden", "", "create", "free")
	check(gardenlet, "secrets", "seed-matrix", "", "list", "free")
	check(gardenlet, "shoots/status", "", "", "patch", "graph")
	check(gardenlet, "shoots/binding", "", "", "update", "none")
	check(gardenlet, "shoots/adminkubeconfig", "", "", "create", "none")
	check(gardenlet, "cloudprofiles", "", "", "list", "rbac")
	check(gardenlet, "namespaces", "", "garden", "get", "free")
	check(gardenlet, "serviceaccounts/token", "seed-matrix", "", "create", "free")
	check(gardenlet, "clusterroles", "", "", "get", "none")
	extension := read("--as-extension", "seed-matrix/extension-x")
	check(extension, "leases", "", "", "get", "none")
	check(extension, "leases", "seed-matrix", "", "deletecollection", "free")
	check(extension, "serviceaccounts", "", "", "create", "none")
	for _, r := range read("--as-extension", "seed-matrix/unknown").Rows {
		for verb, access := range r.Verbs {
			if access != "none" && access != "rbac" {
				t.Errorf("an unknown ServiceAccount may %s %s: %s", verb, r.Resource, access)
			}
		}
	}
	narrow := inLandscape(t, "access", "matrix", "--as-seed", "matrix").OK(t).Shows(t, "DELETECOLLECTION", "OBJECTS", "requests tried")
	if absent := inLandscape(t, "access", "matrix", "--as-seed", "absent").OK(t); !strings.Contains(
		absent.Stderr, `There is no Seed "absent"`) {
		t.Errorf("of no Seed: %s", absent.Stderr)
	}
	wide := inLandscape(t, "access", "matrix", "--as-seed", "matrix", "-o", "wide").OK(t).Shows(t, "quotas.core.gardener.cloud")
	if len(wide.Stdout) <= len(narrow.Stdout) || strings.Contains(narrow.Stdout, "quotas") {
		t.Error("-o wide does not show more")
	}
}

// TestGraphCommand looks at the graph in every format, and follows a shoot to its seed.
func TestGraphCommand(t *testing.T) {
	prepareAccess(t, "graphed")
	inLandscape(t, "graph", "shoot", "garden-graphed/graphed").OK(t).Shows(
		t, "Shoot garden-graphed/graphed\n  → Seed graphed\n", "← CredentialsBinding garden-graphed/", "1 of ")
	inLandscape(t, "graph").OK(t).Shows(t, "Seed graphed", "Shoot garden-graphed/graphed\n  → Seed graphed\n")
	inLandscape(t, "graph", "--kind", "secret", "-n", "garden-graphed", "--object", "cred*").OK(t).Shows(
		t, "Secret garden-graphed/credentials\n", "      → Seed graphed")
	inLandscape(t, "graph", "Seed", "graphed", "-o", "dot").OK(t).Shows(t, "digraph", `"Shoot garden-graphed/graphed" -> "Seed graphed";`)

	var part struct {
		Vertices []struct{ Kind, Namespace, Name string }
		Edges    []struct {
			From, To struct{ Kind, Namespace, Name string }
		}
	}
	must(t, json.Unmarshal([]byte(inLandscape(t, "graph", "shoot", "garden-graphed/graphed", "-o", "json").OK(t).Stdout), &part))
	kinds := sets.New[string]()
	for _, vertex := range part.Vertices {
		kinds.Insert(vertex.Kind)
	}
	if !kinds.HasAll("Shoot", "Seed", "CloudProfile", "Namespace") || len(part.Edges) < len(part.Vertices)-1 {
		t.Errorf("around the shoot are %v, and %d edges", kinds.UnsortedList(), len(part.Edges))
	}

	svg := inLandscape(t, "graph", "shoot", "garden-graphed/graphed", "-o", "svg").OK(t).Shows(t, "<svg", "Seed graphed").Stdout
	if again := inLandscape(t, "graph", "shoot", "garden-graphed/graphed", "-o", "svg").Stdout; again != svg {
		t.Error("the same graph is drawn in two ways")
	}
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the drawing is no XML: %v", err)
		}
	}
}

// TestGraphOpensPage uses a browser that writes down the address that it has to open.
func TestGraphOpensPage(t *testing.T) {
	folder := t.TempDir()
	opened, script := filepath.Join(folder, "opened"), filepath.Join(folder, "browser")
	must(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"$1\" > '"+opened+".tmp' && mv '"+opened+".tmp' '"+opened+"'\n"), 0o700))
	t.Setenv("BROWSER", script)
	r := inLandscape(t, "graph", "seed", "--open").OK(t)
	page := strings.TrimSpace(r.Stdout)
	eventually(t, waitTimeout, func(context.Context) error {
		data, err := os.ReadFile(opened)
		if err == nil && strings.TrimSpace(string(data)) != page {
			err = fmt.Errorf("opened %s, printed %s", data, page)
		}
		return err
	})
	if !strings.HasPrefix(page, "https://127.0.0.1:") || !strings.Contains(page, "kind=seed") {
		t.Errorf("the page is %s", page)
	}
	cookies, err := cookiejar.New(nil)
	must(t, err)
	// like a browser that was told to trust the certificate
	browser := &http.Client{Jar: cookies, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := browser.Get(page)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("<svg")) {
		t.Errorf("the page: %s: %.300s", response.Status, body)
	}
	without, _, _ := strings.Cut(page, "?")
	browser.Jar = nil
	refused, err := browser.Get(without)
	must(t, err)
	defer refused.Body.Close()
	if refused.StatusCode == http.StatusOK {
		t.Error("the page is open to who has no token")
	}
}

// TestAccessCLIErrors provokes errors, and expects messages that say what to do.
func TestAccessCLIErrors(t *testing.T) {
	nowhere := t.TempDir()
	file := filepath.Join(nowhere, "kubeconfig")
	must(t, os.WriteFile(file, []byte("apiVersion: v1\nkind: Config\nclusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\n"+
		"contexts: [{name: x, context: {cluster: x}}]\ncurrent-context: x\n"), 0o600))
	landscape := suite.DataDir()
	for _, test := range []struct {
		dir, args string
		code      int
		says      string
	}{
		{nowhere, "access explain --as-seed a get seeds", 3, "gardenlite up"},
		{nowhere, "access matrix --as-seed a", 3, "gardenlite up"},
		{nowhere, "access check", 3, "gardenlite up"},
		{nowhere, "access check --kubeconfig " + file + "x", 2, "no such file"},
		{nowhere, "access check --kubeconfig " + file, 1, "looking for a Seed to attack"},
		{nowhere, "access check -o xml", 2, "one of"},
		{landscape, "access check --victim absent", 1, "--victim"},
		{nowhere, "graph", 3, "gardenlite up"},
		{nowhere, "access explain get seeds", 2, "--as-seed"},
		{nowhere, "access matrix", 2, "--as-seed"},
		{nowhere, "access explain --as-seed a --as-extension seed-a/extension-x get seeds", 2, "one of"},
		{nowhere, "access explain --as-extension extension-x get seeds", 2, "NAMESPACE/NAME"},
		{nowhere, "access explain --as-seed a get", 2, "arg"},
		{nowhere, "access nonsense", 2, "nonsense"},
		{nowhere, "access explain --as-seed a get seeds a/b/c", 2, "NAMESPACE/NAME"},
		{nowhere, "access explain --as-seed a get secrets x/y -n z", 2, "another namespace"},
		{nowhere, "access explain --as-seed a get seeds -o xml", 2, "one of"},
		{nowhere, "graph -o png", 2, "one of"},
		{nowhere, "graph --open -o svg", 2, "one of the two"},
		{nowhere, "graph shoot --kind seed", 2, "say it once"},
		{landscape, "access explain --as-seed a get sedrets x/y", 2, "did you mean secrets"},
		{landscape, "access explain --as-seed a get secrets y", 2, "NAMESPACE/y"},
		{landscape, "access explain --as-seed a get seeds x/y", 2, "not in namespaces"},
		{landscape, "access explain --as-seed a get shoots/nothing x/y", 2, "it has"},
		{landscape, "graph nonsense", 2, "the graph has"},
		{landscape, "graph secret garden/absent", 1, "nothing in the graph matches"},
		{nowhere, "admission-controller", 2, "--kubeconfig"},
		{nowhere, "admission-controller --kubeconfig " + file + "x", 2, "no such file"},
		{nowhere, "admission-controller --kubeconfig " + file, 1, "does not answer"},
		{nowhere, "admission-controller --kubeconfig x --bind-address 0.0.0.0", 2, "--advertise-address"},
		{nowhere, "admission-controller --kubeconfig x --bind-address 192.0.2.1 --tls-cert-file x --tls-private-key-file y",
			2, "--client-ca-file"},
		{nowhere, "admission-controller --kubeconfig x --tls-cert-file x", 2, "go together"},
		{landscape, "admission-controller --kubeconfig " + kubeconfig, 2, "landscape's"},
	} {
		t.Run(test.args, func(t *testing.T) {
			t.Parallel()
			r := gardenlite(t, test.dir, strings.Fields(test.args)...)
			if r.Code != test.code || !strings.Contains(r.Stderr, test.says) || r.Stdout != "" {
				t.Errorf("exit status %d, expected %d; %q should be in: %s; standard output: %s", r.Code, test.code, test.says, r.Stderr, r.Stdout)
			}
		})
	}
}

func TestAccessCLICompletion(t *testing.T) {
	prepareAccess(t, "completed")
	dir := suite.DataDir()
	complete := func(args ...string) result {
		t.Helper()
		return command(t, "", binary, append([]string{"__complete", "--data-dir", dir}, args...)...).OK(t)
	}
	complete("access", "").Shows(t, "check", "explain", "matrix")
	complete("access", "check", "--victim", "").Shows(t, "completed")
	complete("access", "matrix", "--as-seed", "").Shows(t, "completed")
	complete("access", "explain", "--as-seed", "completed", "").Shows(t, "get", "deletecollection")
	complete("access", "explain", "--as-seed", "completed", "get", "").Shows(t, "shoots.core.gardener.cloud/status", "secrets")
	complete("graph", "--kind", "").Shows(t, "CredentialsBinding")
	complete("graph", "").Shows(t, "ManagedSeed")
	for _, args := range [][]string{{"access"}, {"access", "explain"}, {"access", "matrix"}, {"access", "check"}, {"graph"},
		{"admission-controller"}} {
		command(t, "", binary, append(args, "--help")...).OK(t).Shows(t, "Examples:", "gardenlite "+args[0])
	}
}

// alone is an admission controller that runs alone.
type alone struct {
	cmd    *exec.Cmd
	output []string
	ended  chan error
}

// startAlone starts an admission controller, and returns when it is ready.
func startAlone(t *testing.T, args ...string) *alone {
	t.Helper()
	a := &alone{cmd: exec.Command(binary, append([]string{"admission-controller"}, args...)...), ended: make(chan error, 1)}
	stdout, err := a.cmd.StdoutPipe()
	must(t, err)
	var stderr bytes.Buffer
	a.cmd.Stderr = &stderr
	must(t, a.cmd.Start())
	ready := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			a.output = append(a.output, lines.Text())
			if strings.Contains(lines.Text(), "configurations of the webhooks are") {
				close(ready)
			}
		}
		a.ended <- a.cmd.Wait()
		close(a.ended)
	}()
	t.Cleanup(func() { _ = a.cmd.Process.Kill(); <-a.ended })
	select {
	case <-ready:
	case err := <-a.ended:
		t.Fatalf("it ended with %v: %s", err, stderr.String())
	case <-time.After(waitTimeout):
		t.Fatal("not ready")
	}
	return a
}

// stop ends the process as Ctrl-C does.
func (a *alone) stop(t *testing.T) {
	t.Helper()
	must(t, a.cmd.Process.Signal(os.Interrupt))
	select {
	case err := <-a.ended:
		must(t, err)
	case <-time.After(waitTimeout):
		t.Fatal("not ended after Ctrl-C")
	}
}

// TestAdmissionControllerAlone runs an admission controller with certificates of its own, and calls it as a
// kube-apiserver would: with the files that it has written.
func TestAdmissionControllerAlone(t *testing.T) {
	prepareAccess(t, "alone")
	files, dir := filepath.Join(t.TempDir(), "files"), filepath.Join(t.TempDir(), "state")
	args := []string{"--kubeconfig", kubeconfig, "--data-dir", dir, "--write-config", files, "--debug"}
	a := startAlone(t, args...)
	output := strings.Join(a.output, "\n")
	for _, want := range []string{"--authorization-config=" + files, "--admission-control-config-file=" + files,
		"not installed", "Page      https://127.0.0.1:"} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is not in:\n%s", want, output)
		}
	}
	for _, name := range []string{"authorization.yaml", "authorization.kubeconfig", "admission.yaml", "admission.kubeconfig",
		"client.crt", "client.key"} {
		if info, err := os.Stat(filepath.Join(files, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	apiserver, err := clientcmd.BuildConfigFromFlags("", filepath.Join(files, "authorization.kubeconfig"))
	must(t, err)
	for _, test := range []struct {
		seed    string
		allowed bool
	}{{"alone", true}, {"other", false}} {
		if allowed, err := reviewAt(t, apiserver, test.seed); err != nil || allowed != test.allowed {
			t.Errorf("seed %s: allowed %t, %v", test.seed, allowed, err)
		}
	}
	stranger := rest.CopyConfig(apiserver)
	stranger.CertFile, stranger.KeyFile = "", ""
	if _, err := reviewAt(t, stranger, "alone"); err == nil {
		t.Error("it answers who has no client certificate")
	}
	if _, err := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(
		t.Context(), "gardener-admission-controller", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	second := command(t, "", binary, append([]string{"admission-controller"}, args...)...)
	if second.Code != 1 || !strings.Contains(second.Stderr, "--data-dir") {
		t.Errorf("a second one in the same folder: exit status %d: %s", second.Code, second.Stderr)
	}
	a.stop(t)

	again := startAlone(t, args...)
	if allowed, err := reviewAt(t, apiserver, "alone"); err != nil || !allowed {
		t.Errorf("after a restart with the same files: allowed %t, %v", allowed, err)
	}
	again.stop(t)
}

// reviewAt asks a webhook whether the gardenlet of a seed may read the secret of the shoot of seed "alone".
func reviewAt(t *testing.T, webhook *rest.Config, seed string) (bool, error) {
	t.Helper()
	transport, err := rest.HTTPClientFor(webhook)
	must(t, err)
	body, err := json.Marshal(authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "gardener.cloud:system:seed:" + seed, Groups: []string{"gardener.cloud:system:seeds"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Version: "v1", Resource: "secrets",
				Namespace: "garden-alone", Name: "credentials"},
		},
	})
	must(t, err)
	response, err := transport.Post(webhook.Host, "application/json", bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return false, errors.New(response.Status)
	}
	var review authorizationv1.SubjectAccessReview
	err = json.NewDecoder(response.Body).Decode(&review)
	return review.Status.Allowed, err
}

// admissionControllerForGarden runs an admission controller in the place of a landscape's own: the garden's API
// server calls it, with the landscape's certificates and on its port.
func admissionControllerForGarden(t *testing.T, dir string) {
	upForWorlds(t, dir, "admission-controller")
	var status struct{ AdmissionPort int }
	must(t, json.Unmarshal([]byte(gardenlite(t, dir, "status", "-o", "json").OK(t).Stdout), &status))
	if r := gardenlite(t, dir, "access", "explain", "--as-seed", "a", "get", "seeds"); r.Code != 1 ||
		!strings.Contains(r.Stderr, "--controllers") {
		t.Errorf("explain without an admission controller: exit status %d: %s", r.Code, r.Stderr)
	}
	gardenlet := filepath.Join(t.TempDir(), "gardenlet")
	user := gardenlite(t, dir, "kubeconfig", "--user", "gardener.cloud:system:seed:a", "--group", "gardener.cloud:system:seeds").OK(t)
	must(t, os.WriteFile(gardenlet, []byte(user.Stdout), 0o600))
	as := func(args ...string) result {
		return command(t, "", kubectlBinary, append([]string{"--kubeconfig", gardenlet}, args...)...)
	}
	allowed := func(want bool) {
		t.Helper()
		eventually(t, waitTimeout, func(context.Context) error {
			if r := as("get", "shoots", "-A", "-l", "name.seed.gardener.cloud/a=true"); (r.Code == 0) != want {
				return fmt.Errorf("exit status %d: %s", r.Code, r.Stderr)
			}
			return nil
		})
	}
	allowed(false)
	pki := filepath.Join(dir, "pki", "garden")
	a := startAlone(t, "--kubeconfig", filepath.Join(dir, "kubeconfig"), "--data-dir", filepath.Join(t.TempDir(), "state"), "--install",
		"--port", fmt.Sprint(status.AdmissionPort), "--tls-cert-file", filepath.Join(pki, "apiserver.crt"),
		"--tls-private-key-file", filepath.Join(pki, "apiserver.key"),
		"--tls-ca-file", filepath.Join(pki, "ca.crt"), "--client-ca-file", filepath.Join(pki, "ca.crt"))
	allowed(true)
	lease := filepath.Join(t.TempDir(), "lease.yaml")
	must(t, os.WriteFile(lease, []byte(
		`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"b","namespace":"gardener-system-seed-lease"}}`), 0o600))
	if r := as("create", "-f", lease); r.Code == 0 || !strings.Contains(r.Stderr, "gardener-admission-controller") &&
		!strings.Contains(r.Stderr, "seed-restriction.gardener.cloud") {
		t.Errorf("the lease of another seed: exit status %d: %s", r.Code, r.Stderr)
	}
	a.stop(t)
	allowed(false)
}
