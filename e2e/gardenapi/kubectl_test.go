package gardenapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// kubectl runs kubectl with the administrator's kubeconfig.
func kubectl(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return command(t, stdin, kubectlBinary, append([]string{"--kubeconfig", kubeconfig, "--cache-dir", t.TempDir()}, args...)...)
}

// manifestOf writes some of a suffix's valid objects to a file.
func manifestOf(t *testing.T, suffix string, kinds ...string) string {
	t.Helper()
	var out bytes.Buffer
	for _, obj := range validObjects(t, suffix) {
		for _, kind := range kinds {
			if obj.GetKind() == kind {
				data, err := yaml.Marshal(obj.Object)
				must(t, err)
				fmt.Fprintf(&out, "---\n%s", data)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	must(t, os.WriteFile(file, out.Bytes(), 0o600))
	return file
}

func TestKubectlExplain(t *testing.T) {
	kubectl(t, "", "explain", "shoot.spec.provider", "--recursive").OK(t).Shows(t, "GROUP:      core.gardener.cloud",
		"workers", "machine", "image", "maximum", "-required-")
	kubectl(t, "", "explain", "seed.spec.dns").OK(t).Shows(t, "provider", "<SeedDNSProvider>")
	kubectl(t, "", "explain", "bastion.spec.ingress", "--output=plaintext-openapiv2").OK(t).Shows(t, "ipBlock")
	for _, r := range gardenResources {
		kubectl(t, "", "explain", r.gvr.Resource).OK(t).Shows(t, "KIND:       "+r.kind, "DESCRIPTION:")
	}
}

func TestKubectlApplyDiffWait(t *testing.T) {
	namespace := prepareProject(t, "kctl")
	manifest := manifestOf(t, "kctl", "CloudProfile", "Project", "SecretBinding", "CredentialsBinding", "Shoot", "Seed")
	kubectl(t, "", "apply", "--server-side", "-f", manifest).OK(t).Shows(t, "shoot.core.gardener.cloud/kctl serverside-applied")
	kubectl(t, "", "apply", "--server-side", "-f", manifest).OK(t)
	if r := kubectl(t, "", "diff", "--server-side", "-f", manifest); r.Code != 0 {
		t.Errorf("a diff of what was just applied: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	data, err := os.ReadFile(manifest)
	must(t, err)
	changed := strings.Replace(string(data), "maximum: 2", "maximum: 3", 1)
	if r := kubectl(t, changed, "diff", "--server-side", "-f", "-"); r.Code != 1 || !strings.Contains(r.Stdout, "+      maximum: 3") {
		t.Errorf("a diff of a change: exit status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}

	kubectl(t, "", "get", "shoots,seeds,projects", "-A", "-o", "wide").OK(t).Shows(t,
		"NAMESPACE", "CLOUDPROFILE", "PROVIDER", "REGION", "SEED", "K8S VERSION", "HIBERNATION", "LAST OPERATION", "STATUS", "PURPOSE",
		"GARDENER VERSION", "APISERVER", "CONTROL", "OBSERVABILITY", "NODES", "SYSTEM", "AGE", "OWNER", "CREATOR",
		"owner@example.com", "1.36.0", "<pending>")

	kubectl(t, "", "-n", namespace, "get", "shoot", "kctl", "-o",
		"jsonpath={.spec.provider.workers[0].name} {.metadata.generation}").OK(t).Shows(t, "pool 1")
	done := make(chan result, 1)
	go func() {
		done <- kubectl(t, "", "-n", namespace, "wait", "shoot/kctl", "--for=condition=EveryNodeReady", "--timeout=30s")
	}()
	shoot := infoOf(t, "Shoot").gvr
	_, err = dyn.Resource(shoot).Namespace(namespace).Patch(t.Context(), "kctl", types.MergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"EveryNodeReady","status":"True","reason":"Test","message":"",`+
			`"lastTransitionTime":"2026-01-01T00:00:00Z","lastUpdateTime":"2026-01-01T00:00:00Z"}]}}`), metav1.PatchOptions{}, "status")
	must(t, err)
	(<-done).OK(t).Shows(t, "condition met")
}

func TestKubectlFieldSelectors(t *testing.T) {
	namespace := prepareProject(t, "field")
	kubectl(t, "", "apply", "-f", manifestOf(t, "field", "CloudProfile", "Project", "Seed", "CredentialsBinding",
		"Shoot", "NamespacedCloudProfile", "InternalSecret", "BackupBucket", "BackupEntry", "ControllerDeployment",
		"ControllerRegistration", "ControllerInstallation", "Bastion")).OK(t)
	for _, test := range []struct{ resource, selector, other string }{
		{"shoots", "spec.cloudProfile.Name=field", "spec.cloudProfile.Name=other"},
		{"shoots", "spec.cloudProfile.Kind=CloudProfile,metadata.name=field", "spec.cloudProfile.Kind=NamespacedCloudProfile"},
		// From Kubernetes 1.34 on the deprecated name is not filled in any more.
		{"shoots", "spec.cloudProfileName=,metadata.name=field", "spec.cloudProfileName=other"},
		{"shoots", "spec.seedName!=other,status.seedName=,metadata.name=field", "spec.seedName=other"},
		{"shoots", "metadata.namespace=" + namespace, "status.seedName=other"},
		{"projects", "spec.namespace=" + namespace, "spec.namespace=other"},
		{"backupbuckets", "spec.seedName=field", "spec.seedName=other"},
		{"backupentries", "spec.bucketName=field", "spec.bucketName=other"},
		{"backupentries", "spec.seedName=field", "spec.seedName=other"},
		{"controllerinstallations", "spec.seedRef.name=field", "spec.seedRef.name=other"},
		{"controllerinstallations", "spec.registrationRef.name=field", "spec.registrationRef.name=other"},
		{"bastions", "spec.shootRef.name=field", "spec.shootRef.name=other"},
		{"internalsecrets", "type=Opaque,metadata.name=field", "type=other"},
		{"namespacedcloudprofiles", "spec.parent.name=field", "spec.parent.name=other"},
	} {
		t.Run(test.resource+" "+test.selector, func(t *testing.T) {
			if names := kubectl(t, "", "get", test.resource, "-A", "--field-selector", test.selector, "-o", "name").OK(
				t).Stdout; strings.Count(names, "\n") != 1 || !strings.HasSuffix(strings.TrimSpace(names), "/field") {
				t.Errorf("selects %q", names)
			}
			if names := kubectl(t, "", "get", test.resource, "-A", "--field-selector", test.other, "-o", "name").OK(
				t).Stdout; strings.Contains(names, "/field") {
				t.Errorf("%s selects %q", test.other, names)
			}
		})
	}
	if r := kubectl(t, "", "get", "shoots", "-A", "--field-selector", "spec.region=x"); r.Code == 0 {
		t.Error("a field that cannot be selected is accepted")
	}
}

func TestKubectlWatchAndPages(t *testing.T) {
	namespace := prepareProject(t, "pages")
	const count = 25
	var manifests strings.Builder
	for i := range count {
		fmt.Fprintf(&manifests, "---\napiVersion: core.gardener.cloud/v1beta1\nkind: InternalSecret\nmetadata:\n"+
			"  name: page-%02d\n  namespace: %s\ntype: Opaque\n", i, namespace)
	}
	kubectl(t, manifests.String(), "create", "-f", "-").OK(t)
	if names := kubectl(t, "", "-n", namespace, "get", "internalsecrets", "--chunk-size=4", "-o", "name").OK(
		t).Stdout; strings.Count(names, "\n") != count {
		t.Errorf("in pages of 4 there are %d, not %d", strings.Count(names, "\n"), count)
	}

	cmd := exec.CommandContext(t.Context(), kubectlBinary, "--kubeconfig", kubeconfig, "-n", namespace, "get",
		"internalsecrets", "page-00", "--watch", "-o", "json", "--output-watch-events")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	events := json.NewDecoder(out)
	next := func() string {
		var event struct {
			Type   string
			Object struct{ Metadata metav1.ObjectMeta }
		}
		must(t, events.Decode(&event))
		return event.Type + " " + event.Object.Metadata.Labels["seen"]
	}
	if got := next(); got != "ADDED " {
		t.Errorf("first event %q", got)
	}
	kubectl(t, "", "-n", namespace, "label", "internalsecret", "page-00", "seen=yes").OK(t)
	if got := next(); got != "MODIFIED yes" {
		t.Errorf("second event %q", got)
	}
	kubectl(t, "", "-n", namespace, "delete", "internalsecret", "page-00").OK(t)
	if got := next(); got != "DELETED yes" {
		t.Errorf("third event %q", got)
	}
}

func TestKubectlScale(t *testing.T) {
	prepareProject(t, "scale")
	kubectl(t, "", "apply", "-f", manifestOf(t, "scale", "ManagedSeedSet")).OK(t)
	kubectl(t, "", "-n", "garden", "scale", "managedseedset/scale", "--replicas=3").OK(t)
	kubectl(t, "", "-n", "garden", "get", "managedseedset", "scale", "-o",
		"jsonpath={.spec.replicas}/{.metadata.generation}").OK(t).Shows(t, "3/2")
	if r := kubectl(t, "", "-n", "garden", "scale", "managedseedset/scale", "--replicas=3", "--current-replicas=5"); r.Code == 0 {
		t.Error("a scale that expects another number is accepted")
	}
}
