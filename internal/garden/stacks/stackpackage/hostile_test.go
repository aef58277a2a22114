package stackpackage

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// refusal has changes to a valid package, and a part of the expected error.
type refusal struct {
	changes map[string]string
	says    string
}

func testRefusals(t *testing.T, refusals map[string]refusal) {
	t.Helper()
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			p, err := Read(valid(test.changes))
			wantError(t, err, test.says)
			if p != nil {
				t.Error("there is a package, too")
			}
		})
	}
}

func inCRD(old, new string) map[string]string {
	return map[string]string{crdPath: replace(crd, old, new)}
}

func inController(old, new string) map[string]string {
	return map[string]string{installFile: replace(controller, old, new)}
}

func inPod(field string) map[string]string {
	return inController("      containers:\n", "      "+field+"\n      containers:\n")
}

func inContainer(field string) map[string]string {
	return inController("        env:", "        "+field+"\n        env:")
}

func securityContext(field string) map[string]string { return inController("privileged: false", field) }

func inVolume(source string) map[string]string { return inController("emptyDir: {}", source) }

func dependsOn(crd string) map[string]string {
	return map[string]string{appFile: app + fmt.Sprintf("dependsOn: [{crd: %q}]\n", crd)}
}

// TestRefusedFiles checks files that a package must not have, or not in this form.
func TestRefusedFiles(t *testing.T) {
	testRefusals(t, map[string]refusal{
		"rbac.yaml":              {map[string]string{"rbac.yaml": "rules: []"}, "permissions of a stack are implicit"},
		"rbac.yaml below":        {map[string]string{"resources/rbac.yaml": "rules: []"}, "permissions of a stack are implicit"},
		"unknown file":           {map[string]string{"run.sh": "#!/bin/sh"}, "run.sh is no file of a package"},
		"unknown file below":     {map[string]string{"resources/deployment.yaml": "a: b"}, "no file of a package"},
		"CRD outside resources":  {map[string]string{"bucket.crd.yaml": crd}, "no file of a package"},
		"path with a space":      {map[string]string{"resources/a b.crd.yaml": crd}, "is not allowed"},
		"path with a Cyrillic c": {map[string]string{"resources/сrd.yaml": crd}, "is not allowed"},
		"path that leads out":    {map[string]string{"resources/../../crd.yaml": crd}, "is not allowed"},
		"large icon":             {map[string]string{"icon.svg": strings.Repeat("x", maxIconBytes+1)}, "131072 are allowed"},
		"icons beyond annotations": {
			map[string]string{"icon.svg": strings.Repeat("x", maxIconBytes), "ui-schema.yaml": strings.Repeat("#", 100<<10)}, "annotations"},

		"no app.yaml":         {map[string]string{appFile: "-"}, "no app.yaml"},
		"empty app.yaml":      {map[string]string{appFile: ""}, "app.yaml is empty"},
		"app.yaml is no YAML": {map[string]string{appFile: "{"}, "app.yaml"},
		"app.yaml is a list":  {map[string]string{appFile: "[]"}, "app.yaml"},
		"unknown key":         {map[string]string{appFile: app + "permissions: []\n"}, "unknown field"},
		"key twice":           {map[string]string{appFile: app + "permissionScope: Cluster\n"}, "already set"},
		"two documents": {map[string]string{appFile: app + "---\n" + replace(app, "Namespaced", "Cluster")},
			"more than one document"},
		"alias bomb": {map[string]string{appFile: app + "readme: &a xxxx\nkeywords: [*a, *a]\n"}, "anchors and aliases"},
		"deep nesting": {map[string]string{"resources/group.yaml": strings.Repeat("[", 200) + strings.Repeat("]", 200)},
			"nested more than 100 times"},
		"no title":                      {map[string]string{appFile: "permissionScope: Cluster\n"}, "has no title"},
		"title of spaces":               {map[string]string{appFile: "title: ' '\npermissionScope: Cluster\n"}, "has no title"},
		"no permissionScope":            {map[string]string{appFile: "title: x\n"}, "has no permissionScope"},
		"unknown permissionScope":       {map[string]string{appFile: "title: x\npermissionScope: Global\n"}, `permissionScope "Global"`},
		"permissionScope in lower case": {map[string]string{appFile: "title: x\npermissionScope: cluster\n"}, `permissionScope "cluster"`},
	})
}

// TestRefusedDependencies checks dependencies that would grant permissions that no stack may have.
func TestRefusedDependencies(t *testing.T) {
	testRefusals(t, map[string]refusal{
		"dependsOn of Secrets":        {dependsOn("secrets"), "groups without a dot are built into Kubernetes"},
		"dependsOn of the core group": {dependsOn("secrets."), "groups without a dot"},
		"dependsOn of Deployments":    {dependsOn("deployments.apps"), "groups without a dot"},
		"dependsOn of Roles":          {dependsOn("clusterroles.rbac.authorization.k8s.io"), "k8s.io and the groups below it"},
		"dependsOn of Stages":         {dependsOn("stages.kwok.x-k8s.io"), "x-k8s.io and the groups below it"},
		"dependsOn of Shoots":         {dependsOn("shoots.core.gardener.cloud"), "gardener.cloud and the groups below it"},
		"dependsOn of installs": {dependsOn("clusterstackinstalls.stacks.crossplane.io"),
			"stacks.crossplane.io and the groups below it"},
		"dependsOn of a wildcard":         {dependsOn("*.example.org"), "plural must be a name"},
		"dependsOn of a wildcard group":   {dependsOn("buckets.*.example.org"), "group must be a DNS name"},
		"dependsOn of a subresource":      {dependsOn("secrets/status"), "groups without a dot"},
		"dependsOn with a Cyrillic e":     {dependsOn("buckеts.example.org"), "plural must be a name"},
		"dependsOn with a Cyrillic group": {dependsOn("buckets.еxample.org"), "group must be a DNS name"},
		"dependsOn with upper case":       {dependsOn("buckets.core.Gardener.cloud"), "group must be a DNS name"},
		"dependsOn with a space":          {dependsOn("buckets.example.org "), "group must be a DNS name"},
		"dependsOn with a final dot":      {dependsOn("shoots.core.gardener.cloud."), "group must be a DNS name"},
	})
}

// TestRefusedInput checks variables and arguments that name another identity than the Stack's, or files of the machine.
func TestRefusedInput(t *testing.T) {
	variable := func(name, value string) map[string]string {
		return inController("env: [", fmt.Sprintf("env: [{name: %s, value: %q}, ", name, value))
	}
	variableFrom := func(name, from string) map[string]string {
		return inController("env: [", fmt.Sprintf("env: [{name: %s, valueFrom: {%s: {name: c, key: k}}}, ", name, from))
	}
	arguments := func(args ...string) map[string]string {
		return inContainer(`args: ["` + strings.Join(args, `", "`) + `"]`)
	}
	refusals := map[string]refusal{
		"KUBECONFIG":                 {variable("KUBECONFIG", "../../../../../kubeconfig"), "the variable KUBECONFIG is not allowed"},
		"KUBECONFIG of a volume":     {variable("KUBECONFIG", "/tmp/kubeconfig"), "the variable KUBECONFIG is not allowed"},
		"KUBECONFIG of a Secret":     {variableFrom("KUBECONFIG", "secretKeyRef"), "the variable KUBECONFIG is not allowed"},
		"another API server":         {variable("KUBERNETES_SERVICE_HOST", "example.org"), "KUBERNETES_SERVICE_HOST is not allowed"},
		"home directory":             {variable("HOME", "/root"), "the variable HOME is not allowed"},
		"XDG_CONFIG_HOME":            {variable("XDG_CONFIG_HOME", "x"), "XDG_CONFIG_HOME is not allowed"},
		"credentials of the user":    {variable("AWS_SHARED_CREDENTIALS_FILE", "/home/me/.aws/credentials"), "names /home/me/.aws/credentials"},
		"folder of the user":         {variable("DOCKER_CONFIG", "/root"), "names /root"},
		"home directory in a value":  {variable("A", "~/.kube/config"), "by .., a home directory or file:"},
		"another's home directory":   {variable("A", "x:~root/.kube/config"), "by .., a home directory or file:"},
		"file upwards":               {variable("A", "a/../../x"), "by .., a home directory or file:"},
		"file upwards from a volume": {variable("A", "/tmp/../../x"), "by .., a home directory or file:"},
		"one of several files":       {variable("A", "/tmp/a:/etc/passwd"), "names /etc/passwd"},
		"file URL":                   {variable("A", "file:///etc/passwd"), "by .., a home directory or file:"},
		"parts of a path": {inController("env: [", `env: [{name: A, value: "."}, {name: B, value: "$(A)./x"}, `),
			"the variable B is not allowed"},
		"parts of a path in arguments": {inController("env: [", `args: ["--config=$(A)$(A)/x"]`+"\n        env: [{name: A, value: .}, "),
			"by .., a home directory or file:"},
		"growing variables": {inController("env: [", "env: [{name: A0, value: "+strings.Repeat("x", 1000)+"}, "+
			strings.Join(slices.Collect(func(yield func(string) bool) {
				for i := range 20 {
					if !yield(fmt.Sprintf("{name: A%d, value: $(A%d)$(A%d)}", i+1, i, i)) {
						return
					}
				}
			}), ", ")+", "), "more than 131072 bytes"},
		"file of a ConfigMap": {variableFrom("AWS_CONFIG_FILE", "configMapKeyRef"), "the variable AWS_CONFIG_FILE names a file"},
		"annotation of the Pod": {inController("env: [", "env: [{name: A, valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['a']\"}}}, "),
			"not an annotation"},
		"envFrom":               {inContainer("envFrom: [{configMapRef: {name: c}}]"), "name each of them in env"},
		"kubeconfig":            {arguments("--kubeconfig=../../../../../kubeconfig"), "the identity of its Stack"},
		"kubeconfig apart":      {arguments("--kubeconfig", "k"), "the identity of its Stack"},
		"kubeconfig with one -": {arguments("-kubeconfig", "k"), "the identity of its Stack"},
		"another kubeconfig":    {arguments("--authorization-kubeconfig=k"), "the identity of its Stack"},
		"master":                {arguments("--master=https://example.org"), "the identity of its Stack"},
		"impersonation":         {arguments("--as=system:admin"), "the identity of its Stack"},
		"configuration upwards": {arguments("--config", "../../../../pki/ca.key"), "by .., a home directory or file:"},
		"configuration":         {arguments("--config=/root/.aws/config"), "names /root/.aws/config"},
		"file after @":          {arguments("--data=@/etc/passwd"), "names /etc/passwd"},
		"command":               {inContainer(`command: [/manager, "--kubeconfig=k"]`), "the identity of its Stack"},
		"probe":                 {inContainer(`livenessProbe: {exec: {command: [x, "--kubeconfig=../../k"]}}`), "the identity of its Stack"},
		"init container":        {inPod(`initContainers: [{name: i, image: i, args: ["--kubeconfig=k"]}]`), "the identity of its Stack"},
	}
	testRefusals(t, refusals)
	for name, changes := range map[string]map[string]string{
		"file in a volume":      variable("GOOGLE_APPLICATION_CREDENTIALS", "/tmp/key.json"),
		"files in a volume":     variable("FILES", "/tmp/a:/tmp/b"),
		"password of a Secret":  variableFrom("DB_PASSWORD", "secretKeyRef"),
		"URL":                   variable("ENDPOINT", "https://example.org:8443/a/b?c=d,http://a/b"),
		"version":               variable("VERSION", "~1.2..3"),
		"relative file":         variable("NAME", "a/b"),
		"password in arguments": arguments("--password=$(DB_PASSWORD)", "--name=$(NAMESPACE)"),
		"usual arguments":       arguments("--metrics-addr=:8080", "--metrics-path=/metrics", "--enable-leader-election", "--log=/dev/stderr"),
		"command":               inContainer(`command: [/usr/local/bin/manager, --sync, 1m]`),
		"certificates":          arguments("--cert-dir=/tmp/certs"),
		"probe":                 inContainer(`livenessProbe: {exec: {command: [/bin/check, --verbose]}}`),
	} {
		if _, err := Read(valid(changes)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRefusedByTheAPI checks controllers that the API server would refuse.
func TestRefusedByTheAPI(t *testing.T) {
	mount := func(field string) map[string]string {
		return inController("mountPath: /tmp", "mountPath: /tmp, "+field)
	}
	testRefusals(t, map[string]refusal{
		"port 0":            {inContainer("ports: [{containerPort: 0}]"), "containers[0].ports[0].containerPort"},
		"port beyond 65535": {inContainer("ports: [{containerPort: 70000}]"), "containers[0].ports[0].containerPort"},
		"ports of one name": {inContainer("ports: [{containerPort: 1, name: a}, {containerPort: 2, name: a}]"), "ports[1].name"},
		"port of a probe":   {inContainer("livenessProbe: {tcpSocket: {port: no port!}}"), "livenessProbe.tcpSocket.port"},
		"subPath upwards":   {mount("subPath: ../x"), "volumeMounts.subPath"},
		"absolute subPath":  {mount("subPath: /x"), "volumeMounts.subPath"},
		"unknown volume":    {inController("{name: tmp, mountPath: /tmp}", "{name: other, mountPath: /tmp}"), "volumeMounts[0].name"},
		"volume twice": {inController("{name: tmp, emptyDir: {}}", "{name: tmp, emptyDir: {}}, {name: tmp, emptyDir: {}}"),
			"volumes[1].name"},
		"memory below zero": {inContainer("resources: {limits: {memory: -1}}"), "resources.limits[memory]"},
		"replicas below zero": {inController("  selector: {matchLabels: {app: buckets}}",
			"  replicas: -1\n  selector: {matchLabels: {app: buckets}}"),
			"spec.replicas"},
		"restart policy":  {inPod("restartPolicy: Never"), "restartPolicy"},
		"name of a label": {inController("{app.kubernetes.io/name: buckets}", "{app.kubernetes.io/name: no label!}"), "metadata.labels"},
		"Job with backoff below zero": {map[string]string{installFile: replace(controllerJob, "spec:\n  template:",
			"spec:\n  backoffLimit: -1\n  template:")},
			"spec.backoffLimit"},
	})
	_, err := Read(valid(mount("subPath: ../x, subPathExpr: y")))
	wantError(t, err, "subPathExpr is not allowed")
	_, err = Read(valid(map[string]string{installFile: replace(replace(controller, "mountPath: /tmp", "mountPath: /tmp, subPath: ../x"),
		"        env:", "        ports: [{containerPort: 0}]\n        env:")}))
	wantError(t, err, "subPath")
	wantError(t, err, "containerPort")
}

// TestRefusedCRDs checks CRDs that no stack may own.
func TestRefusedCRDs(t *testing.T) {
	testRefusals(t, map[string]refusal{
		"CRD that is cluster-scoped": {inCRD("scope: Namespaced", "scope: Cluster"), "scope must be Namespaced"},
		"CRD without schema":         {map[string]string{crdPath: crd[:strings.Index(crd, "    schema:")]}, "has no schema"},
		"old CRD without schema": {
			map[string]string{crdPath: oldCRD[:strings.Index(oldCRD, "  validation:")] + "  version: v1alpha1\n"}, "has no schema"},
		"old CRD, cluster-scoped": {map[string]string{crdPath: replace(oldCRD, "scope: Namespaced", "scope: Cluster")},
			"scope must be Namespaced"},
		"CRD of the group apps":             {inCRD("storage.example.org", "apps"), "groups without a dot"},
		"CRD of k8s.io":                     {inCRD("storage.example.org", "rbac.authorization.k8s.io"), "k8s.io and the groups"},
		"CRD of kubernetes.io":              {inCRD("storage.example.org", "x.kubernetes.io"), "kubernetes.io and the groups"},
		"CRD of KWOK":                       {inCRD("storage.example.org", "kwok.x-k8s.io"), "x-k8s.io and the groups"},
		"CRD of a group like Kubernetes'":   {inCRD("storage.example.org", "my-k8s.io"), "end in k8s.io"},
		"CRD of gardenlite":                 {inCRD("storage.example.org", "gardenlite.dev"), "gardenlite.dev and the groups"},
		"CRD of machine-controller-manager": {inCRD("storage.example.org", "machine.sapcloud.io"), "sapcloud.io and the groups"},
		"CRD of the Prometheus operator":    {inCRD("storage.example.org", "monitoring.coreos.com"), "coreos.com and the groups"},
		"CRD of Gardener":                   {inCRD("storage.example.org", "core.gardener.cloud"), "gardener.cloud and the groups"},
		"CRD of the Stack Manager":          {inCRD("storage.example.org", "stacks.crossplane.io"), "stacks.crossplane.io and the groups"},
		"CRD with another name":             {inCRD("name: buckets.storage", "name: pails.storage"), "its name must be its plural and its group"},
		"CRD with a Cyrillic a":             {inCRD("storage.example", "storаge.example"), "group must be a DNS name"},
		"CRD with a webhook": {inCRD("scope: Namespaced", "scope: Namespaced\n  conversion: {strategy: Webhook, "+
			"webhook: {conversionReviewVersions: [v1], clientConfig: {url: \"https://example.org\"}}}"), "conversion webhook"},
		"CRD twice": {map[string]string{"resources/again.crd.yaml": crd}, "have the same CRD buckets.storage.example.org"},
		"CRD that is something else": {map[string]string{crdPath: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"},
			"is no CustomResourceDefinition"},
		"CRD of an unknown version":  {inCRD("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v2"), "apiextensions.k8s.io/v2"},
		"CRD with an unknown field":  {inCRD("scope: Namespaced", "scope: Namespaced\n  webhooks: []"), "unknown field"},
		"CRD that is not structural": {inCRD("spec: {type: object, ", "spec: {"), "must not be empty"},
		"CRD with many rules": {inCRD("spec: {type: object, ", "spec: {type: object, X-Kubernetes-Validations: ["+
			strings.Repeat("{rule: 1<2},", maxRules+1)+"], "), "have more than 1000 rules"},
		"CRD and a second document": {map[string]string{crdPath: crd + "---\n" + crd}, "more than one document"},
	})
}

// TestRefusedControllers checks controllers of another kind, and those that would take the identity of other objects.
func TestRefusedControllers(t *testing.T) {
	testRefusals(t, map[string]refusal{
		"install.yaml is a Pod":       {map[string]string{installFile: "apiVersion: v1\nkind: Pod\n"}, "must be a Deployment"},
		"install.yaml is a DaemonSet": {inController("kind: Deployment", "kind: DaemonSet"), "must be a Deployment"},
		"install.yaml is empty":       {map[string]string{installFile: ""}, "is empty"},
		"install.yaml has two":        {map[string]string{installFile: controller + "---\n" + controller}, "more than one document"},
		"install.yaml is a List":      {map[string]string{installFile: "apiVersion: v1\nkind: List\nitems: []\n"}, "must be a Deployment"},
		"namespace": {inController("  name: bucket-controller", "  name: bucket-controller\n  namespace: garden"),
			"the namespace of its Stack"},
		"namespace of the Pod": {inController("metadata: {labels", "metadata: {namespace: garden, labels"), "the namespace of its Stack"},
		"owner": {inController("  name: bucket-controller", "  name: bucket-controller\n  ownerReferences: []"),
			"metadata.ownerReferences is not allowed"},
		"name": {inController("bucket-controller", "Bucket_Controller"), "metadata.name"},
		"reserved annotation": {inController("metadata: {labels",
			"metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/controller: unconfined}, labels"), "has a meaning of its own"},
		"selector of other Pods": {inController("matchLabels: {app: buckets}", "matchLabels: {app: other}"), "spec.selector must select"},
		"selector of all Pods":   {inController("{matchLabels: {app: buckets}}", "{}"), "spec.selector must select"},
		"no container": {
			map[string]string{installFile: replace(controllerJob, `[{name: setup, image: "example.org/stacks/setup:1"}]`, "[]")}, "there is none"},
		"no image": {
			map[string]string{installFile: replace(controllerJob, `, image: "example.org/stacks/setup:1"`, "")}, "has no image"},
		"Job that starts again": {map[string]string{installFile: replace(controllerJob, "Never", "Always")}, "must be Never or OnFailure"},
	})
}

// TestRefusedPods checks Pods that would have more access to their node, or to the garden, than an ordinary Pod.
func TestRefusedPods(t *testing.T) {
	testRefusals(t, map[string]refusal{
		"serviceAccountName":           {inPod("serviceAccountName: default"), "the ServiceAccount of its Stack"},
		"serviceAccount":               {inPod("serviceAccount: default"), "the ServiceAccount of its Stack"},
		"automountServiceAccountToken": {inPod("automountServiceAccountToken: false"), "it must be true"},
		"hostNetwork":                  {inPod("hostNetwork: true"), "spec.template.spec.hostNetwork is not allowed"},
		"hostNetwork in another case":  {inPod("HostNetwork: true"), "spec.template.spec.HostNetwork is not allowed"},
		"hostPID":                      {inPod("hostPID: true"), "hostPID is not allowed"},
		"hostIPC":                      {inPod("hostIPC: true"), "hostIPC is not allowed"},
		"hostUsers":                    {inPod("hostUsers: true"), "hostUsers is not allowed"},
		"nodeName":                     {inPod("nodeName: a-node"), "nodeName is not allowed"},
		"tolerations":                  {inPod("tolerations: [{operator: Exists}]"), "tolerations is not allowed"},
		"priorityClassName":            {inPod("priorityClassName: system-node-critical"), "for their own components"},
		"schedulerName":                {inPod("schedulerName: mine"), "it must be default-scheduler"},
		"sysctls":                      {inController("runAsNonRoot: true,", "sysctls: [],"), "sysctls is not allowed"},
		"root in the Pod":              {inController("runAsUser: 1000", "runAsUser: 0"), "not root's"},
		"group of root":                {inController("runAsUser: 1000", "supplementalGroups: [0]"), "not root's"},
		"privileged":                   {securityContext("privileged: true"), "securityContext.privileged is not allowed"},
		"root":                         {securityContext("runAsUser: 0"), "not root's"},
		"privilege escalation":         {securityContext("allowPrivilegeEscalation: true"), "it must be false"},
		"procMount":                    {securityContext("procMount: Unmasked"), "procMount is not allowed"},
		"unconfined":                   {securityContext("seccompProfile: {type: Unconfined}"), "it must be RuntimeDefault"},
		"capabilities":                 {inController("drop: [ALL]", "add: [SYS_ADMIN]"), "capabilities.add is not allowed"},
		"hostPort":                     {inContainer("ports: [{containerPort: 80, hostPort: 80}]"), "hostPort is not allowed"},
		"probe of another host": {inContainer("livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}"),
			"httpGet.host is not allowed"},
		"device": {inContainer("volumeDevices: []"), "volumeDevices is not allowed"},
		"mount propagation": {inController("mountPath: /tmp", "mountPath: /tmp, mountPropagation: Bidirectional"),
			"mountPropagation is not allowed"},
		"ephemeral container": {inPod("ephemeralContainers: []"), "ephemeralContainers is not allowed"},
		"hostPath":            {inVolume("hostPath: {path: /}"), "hostPath is not allowed"},
		"nfs":                 {inVolume("nfs: {server: a, path: /}"), "nfs is not allowed"},
		"claim of a volume":   {inVolume("persistentVolumeClaim: {claimName: a}"), "persistentVolumeClaim is not allowed"},
		"token for another audience": {inVolume("projected: {sources: [{serviceAccountToken: {path: a, audience: vault}}]}"),
			"tokens are for the garden only"},
		"certificates of a signer": {inVolume("projected: {sources: [{clusterTrustBundle: {path: a}}]}"),
			"clusterTrustBundle is not allowed"},
	})
}

// entry is an entry of an archive.
type entry struct {
	name, link, content string
	kind                byte
}

func writeArchive(t *testing.T, entries []entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		if err := w.WriteHeader(
			&tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Size: int64(len(e.content)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestRefusedArchives checks archives that lead out of the package or exceed a limit.
func TestRefusedArchives(t *testing.T) {
	var many, large []entry
	for i := range maxFiles + 1 {
		many = append(many, entry{name: fmt.Sprintf(".registry/resources/%d.crd.yaml", i)})
	}
	for i := range maxTotalBytes/maxFileBytes + 1 {
		large = append(large, entry{name: fmt.Sprintf(".registry/resources/%d.crd.yaml", i), content: strings.Repeat("x", maxFileBytes)})
	}
	for name, test := range map[string]struct {
		entries []entry
		says    string
	}{
		"path that leads out": {[]entry{{name: ".registry/../../etc/passwd"}}, "leads out of the package"},
		"path beside":         {[]entry{{name: "../.registry/app.yaml"}}, "leads out of the package"},
		"absolute path":       {[]entry{{name: "/.registry/app.yaml", content: app}}, "leads out of the package"},
		"backslashes":         {[]entry{{name: `.registry\..\app.yaml`, content: app}}, "leads out of the package"},
		"symbolic link": {[]entry{{name: ".registry/app.yaml", kind: tar.TypeSymlink, link: "/etc/passwd"}},
			"links and devices are not allowed"},
		"the folder is a link": {[]entry{{name: ".registry", kind: tar.TypeSymlink, link: "/etc"}}, "links and devices are not allowed"},
		"the folder is a file": {[]entry{{name: ".registry"}}, "is no folder"},
		"hard link": {[]entry{{name: ".registry/app.yaml", kind: tar.TypeLink, link: "etc/passwd"}},
			"links and devices are not allowed"},
		"device": {[]entry{{name: ".registry/app.yaml", kind: tar.TypeChar}}, "links and devices are not allowed"},
		"pipe":   {[]entry{{name: ".registry/app.yaml", kind: tar.TypeFifo}}, "links and devices are not allowed"},
		"file twice": {
			[]entry{{name: ".registry/app.yaml", content: app}, {name: "./.registry/app.yaml", content: app}}, "is there twice"},
		"large file": {[]entry{{name: ".registry/app.yaml", content: strings.Repeat("x", maxFileBytes+1)}},
			"more than 1048576 bytes"},
		"many large files":       {large, "more than 8388608 bytes together"},
		"many files":             {many, "more than 500 files"},
		"long path":              {[]entry{{name: ".registry/" + strings.Repeat("x", maxPath)}}, "more than 256 characters"},
		"no package":             {[]entry{{name: "bin/program"}}, "no folder .registry"},
		"nothing but the folder": {[]entry{{name: ".registry/", kind: tar.TypeDir}}, "no folder .registry"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readTar(bytes.NewReader(writeArchive(t, test.entries)))
			wantError(t, err, test.says)
		})
	}
	_, err := readTar(strings.NewReader("this is no archive"))
	wantError(t, err, "unpacking it")
}

// TestRefusedFolders checks folders with links.
func TestRefusedFolders(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "app.yaml")
	if err := os.WriteFile(outside, []byte(app), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, link := range map[string]string{"file": ".registry/app.yaml", "folder": ".registry/resources/x",
		"inside": ".registry/icon.svg"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeFolder(t, dir, valid(map[string]string{appFile: map[bool]string{true: "-", false: app}[name == "file"]}))
			target := map[string]string{"file": outside, "folder": filepath.Dir(outside), "inside": "app.yaml"}[name]
			if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
			_, err := ReadDir(dir)
			wantError(t, err, "links and devices are not allowed")
		})
	}
	t.Run("registry", func(t *testing.T) {
		dir, other := t.TempDir(), t.TempDir()
		writeFolder(t, other, valid(nil))
		if err := os.Symlink(filepath.Join(other, registryDir), filepath.Join(dir, registryDir)); err != nil {
			t.Fatal(err)
		}
		_, err := ReadDir(dir)
		wantError(t, err, "is no folder")
	})
}

// FuzzRead checks that reading any archive ends, and that a package that is accepted can be packed and read again.
func FuzzRead(f *testing.F) {
	for _, files := range []Files{valid(nil), valid(map[string]string{installFile: controllerJob}),
		valid(map[string]string{crdPath: oldCRD}), valid(map[string]string{"rbac.yaml": "rules: []"})} {
		archive, err := writeTar(files, registryDir+"/")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive)
	}
	f.Fuzz(func(t *testing.T, archive []byte) {
		files, err := readTar(bytes.NewReader(archive))
		if err != nil {
			return
		}
		p, err := Read(files)
		if err != nil {
			return
		}
		for _, name := range p.DependsOn {
			plural, group, _ := strings.Cut(name, ".")
			if err := checkCRDName(plural, group); err != nil {
				t.Errorf("dependsOn %s: %v", name, err)
			}
		}
		again, err := writeTar(files, registryDir+"/")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readTar(bytes.NewReader(again)); err != nil {
			t.Errorf("what was read is refused when it is packed again: %v", err)
		}
	})
}

// FuzzFiles checks that reading files with any content ends, and that an accepted controller has no identity of its own
// and no access to its node.
func FuzzFiles(f *testing.F) {
	f.Add(app, controller, crd)
	f.Add(app+"dependsOn: [{crd: mysqlinstances.database.example.org}]\n", controllerJob, oldCRD)
	f.Fuzz(func(t *testing.T, app, install, crd string) {
		p, err := Read(valid(map[string]string{appFile: app, installFile: install, crdPath: crd}))
		if err != nil {
			return
		}
		for _, crd := range p.CRDs {
			if crd.Spec.Scope != apiextensionsv1.NamespaceScoped || checkCRDName(crd.Spec.Names.Plural, crd.Spec.Group) != nil {
				t.Errorf("the CRD %s (%s) passes", crd.Name, crd.Spec.Scope)
			}
		}
		specs := []corev1.PodSpec{}
		if p.Deployment != nil {
			specs = append(specs, p.Deployment.Spec.Template.Spec)
		}
		if p.Job != nil {
			specs = append(specs, p.Job.Spec.Template.Spec)
		}
		for _, spec := range specs {
			if spec.ServiceAccountName != "" || spec.HostNetwork || spec.HostPID || spec.HostIPC || spec.NodeName != "" {
				t.Errorf("the Pod passes: %v", spec)
			}
		}
	})
}
