package stacks

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/gardenlite/gardenlite/e2e/internal/suite"
)

// jobStack returns a stack whose controller is a Job.
func jobStack(t *testing.T, group string) stackFiles {
	t.Helper()
	return bucketStack(group, "Namespaced", "0.1").with("install.yaml", `apiVersion: batch/v1
kind: Job
metadata: {name: bucket-controller}
spec:
  template:
    spec:
      restartPolicy: OnFailure
      containers: [{name: controller, image: "example.org/buckets:0.1"}]
`)
}

// TestLeastPrivilegeOfTheStackManager starts a landscape without the Stack Manager, and again with it. Then it makes the Stack
// Manager do everything that it does: no request is forbidden, and each right of its role is used.
func TestLeastPrivilegeOfTheStackManager(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "landscape")
	withoutStackManager(t, dir)
	log := filepath.Join(t.TempDir(), "audit")
	l := ownLandscape(t, dir, "--audit-log", log)
	jobs := []place{{schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, "least", "bucket-controller"}}
	l.namespace(t, "least")
	l.install(t, namespaceInstall, "least", "job", l.write(t, "job", jobStack(t, "job.least.example.org")))
	l.ready(t, namespaceInstall, "least", "job", "0.1")
	l.changeJob(t, jobs[0])
	l.completes(t, "least", "job")
	l.changeJob(t, jobs[0])
	for kind, scope := range scopes {
		namespace := "least-" + strings.ToLower(scope)
		l.namespace(t, namespace)
		files := bucketStack(strings.ToLower(scope)+".least.example.org", scope, "0.1")
		l.install(t, kind, namespace, "buckets", l.write(t, namespace, files))
		l.ready(t, kind, namespace, "buckets", "0.1")
		l.areRepaired(t, append([]place{{crdResource, "", "buckets." + strings.ToLower(scope) + ".least.example.org"}},
			objectsOf(kind, namespace, "buckets")...))
		l.install(t, kind, namespace, "buckets", l.write(t, namespace+"-2", files.replace(t, "app.yaml", "version: 0.1", "version: 0.2")))
		l.ready(t, kind, namespace, "buckets", "0.2")
		l.uninstall(t, kind, namespace, "buckets")
	}
	l.uninstall(t, namespaceInstall, "least", "job")
	l.exists(t, jobs, false)
	l.expectNothingForbidden(t)
	used := usedRights(t, log)
	role, err := l.kube.RbacV1().ClusterRoles().Get(t.Context(), stackManager, metav1.GetOptions{})
	must(t, err)
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				right := verb + " " + resource
				// RBAC checks these rights when a role or a binding is written: no request uses them.
				if implied := slices.Contains([]string{"bind", "escalate"}, verb); !implied && !used[right] {
					t.Errorf("the right to %s is not used", right)
				}
			}
		}
	}
}

// changeJob removes the label of the stack from its Job, and waits until the label is back.
func (l *landscape) changeJob(t *testing.T, job place) {
	t.Helper()
	before, err := l.get(t.Context(), job)
	must(t, err)
	_, err = l.dyn.Resource(job.resource).Namespace(job.namespace).Patch(t.Context(), job.name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"stacks.crossplane.io/stack":null}}}`), metav1.PatchOptions{})
	must(t, err)
	l.isAgain(t, job, before)
}

// completes waits until the Job of a stack has completed and the Stack Manager has recorded it.
func (l *landscape) completes(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, suite.Timeout, func(ctx context.Context) error {
		stack, err := l.dyn.Resource(stacks).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && stack.GetAnnotations()["stacks.crossplane.io/completed-digest"] == "" {
			err = errors.New("its Job has not completed")
		}
		return err
	})
}

// usedRights returns the rights that the Stack Manager has used, from the audit log. A watch counts as a list, too:
// caches list if the API server refuses to stream the initial state.
func usedRights(t *testing.T, log string) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(log)
	must(t, err)
	used := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		event := auditv1.Event{}
		if json.Unmarshal(lines.Bytes(), &event) != nil { // the line is being written
			continue
		}
		if event.User.Username != stackManager || event.ObjectRef == nil {
			continue
		}
		if event.ResponseStatus != nil && event.ResponseStatus.Code == 403 {
			t.Errorf("it was forbidden to %s %s", event.Verb, event.RequestURI)
		}
		resource := event.ObjectRef.Resource
		if event.ObjectRef.Subresource != "" {
			resource += "/" + event.ObjectRef.Subresource
		}
		used[event.Verb+" "+resource] = true
		if event.Verb == "watch" {
			used["list "+resource] = true
		}
	}
	must(t, lines.Err())
	return used
}
