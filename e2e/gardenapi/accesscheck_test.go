package gardenapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// checkReport is what "gardenlite access check -o json" prints.
type checkReport struct {
	Results []struct {
		Kind                                 int
		Attack, As, Outcome, Request, Answer string
		Unexpected                           bool
	}
	Counts map[string]int
}

// accessCheck runs the check, and expects an exit status.
func accessCheck(t *testing.T, dir string, code int, args ...string) (report checkReport) {
	t.Helper()
	r := gardenlite(t, dir, append([]string{"access", "check", "-o", "json"}, args...)...)
	if r.Code != code {
		t.Fatalf("exit status %d, expected %d: %s%s", r.Code, code, r.Stdout, r.Stderr)
	}
	must(t, json.Unmarshal([]byte(r.Stdout), &report))
	return report
}

// accessCheckFindsHoles runs the attacks against a landscape that withstands them, and against one in which RBAC allows
// attackers everything.
func accessCheckFindsHoles(t *testing.T, dir string) {
	w := worldOfItsOwn(t, "ck", dir)
	w.entryName(t, w.b.name) // gives the shoot its technical ID
	before := w.everything(t)
	report := accessCheck(t, dir, 0, "--victim", w.b.name)
	for _, r := range report.Results {
		if r.Unexpected || r.Outcome == "skipped" && !strings.Contains(r.Answer, "ManagedSeed") {
			t.Errorf("%+v", r)
		}
	}
	if report.Counts["refused"] < 54 || report.Counts["allowed"] != 3 || report.Counts["skipped"] != 1 {
		t.Errorf("%v", report.Counts)
	}
	w.expectUnchanged(t, before)

	elsewhere := accessCheck(t, t.TempDir(), 0, "--kubeconfig", filepath.Join(dir, "kubeconfig"), "--victim", w.b.name)
	if elsewhere.Counts["refused"] < 30 || elsewhere.Counts["skipped"] < 10 {
		t.Errorf("elsewhere: %v", elsewhere.Counts)
	}
	w.expectUnchanged(t, before)

	const group = "rbac.authorization.k8s.io"
	subject := func(name string) any { return map[string]any{"kind": "Group", "apiGroup": group, "name": name} }
	w.create(t, &unstructured.Unstructured{Object: meta(group+"/v1", "ClusterRoleBinding", "", "ck-weak", map[string]any{
		"roleRef":  map[string]any{"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{subject("gardener.cloud:system:seeds"), subject("system:serviceaccounts")}})}, "")
	before = w.everything(t)
	for _, args := range [][]string{nil, {"--kubeconfig", filepath.Join(dir, "kubeconfig")}} {
		weak := accessCheck(t, dir, 1, append(args, "--victim", w.b.name)...)
		if weak.Counts["open"] < 10 {
			t.Errorf("%v: holes are not found: %v", args, weak.Counts)
		}
	}
	w.expectUnchanged(t, before) // so the holes did no harm

	r := gardenlite(t, dir, "access", "check")
	if r.Code != 1 || !strings.Contains(r.Stdout, "Scoped access does not hold.") {
		t.Errorf("exit status %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}

	// What no attack tries is found in the roles.
	must(t, w.at("clusterrolebindings", "").Delete(t.Context(), "ck-weak", metav1.DeleteOptions{}))
	rule := func(group, resource, verb string) any {
		return map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "verbs": []any{verb}}
	}
	w.create(t, &unstructured.Unstructured{Object: meta(group+"/v1", "ClusterRole", "", "ck-more", map[string]any{"rules": []any{
		rule("", "users", "impersonate"), rule("certificates.k8s.io", "certificatesigningrequests/approval", "update"),
		rule("certificates.k8s.io", "signers", "sign"), rule(group, "clusterroles", "bind"),
		rule("core.gardener.cloud", "shoots/adminkubeconfig", "create")}})}, "")
	for name, as := range map[string][]string{"gardener.cloud:system:seeds": {"gardenlet"}, "system:serviceaccounts": {"extension", "stack"}} {
		w.create(t, &unstructured.Unstructured{Object: meta(group+"/v1", "ClusterRoleBinding", "", "ck-more", map[string]any{
			"roleRef":  map[string]any{"apiGroup": group, "kind": "ClusterRole", "name": "ck-more"},
			"subjects": []any{subject(name)}})}, "")
		found := accessCheck(t, dir, 1, "--victim", w.b.name)
		for _, r := range found.Results {
			if r.Kind == 14 && (r.Outcome == "open") != slices.Contains(as, r.As) {
				t.Errorf("bound to %s: %+v", name, r)
			}
		}
		must(t, w.at("clusterrolebindings", "").Delete(t.Context(), "ck-more", metav1.DeleteOptions{}))
	}
}

// everything returns the names of all objects that a check may affect, with their resource versions.
func (w *accessWorld) everything(t *testing.T) (all []string) {
	t.Helper()
	for resource := range accessResources {
		if strings.HasPrefix(resource, "events") {
			continue
		}
		list, err := w.at(resource, "").List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for _, obj := range list.Items {
			version := obj.GetResourceVersion()
			if resource == "leases" || resource == "configmaps" && obj.GetName() == "deleted-seeds" {
				version = "" // written by others too
			}
			all = append(all, fmt.Sprint(vertexName(resource, obj.GetNamespace(), obj.GetName()), " ", version))
		}
	}
	slices.Sort(all)
	return all
}

func (w *accessWorld) expectUnchanged(t *testing.T, before []string) {
	t.Helper()
	for _, o := range w.everything(t) {
		if !slices.Contains(before, o) && !strings.HasPrefix(o, "configmaps garden/deleted-seeds") {
			t.Errorf("new or changed: %s", o)
		}
	}
	if deleted, err := w.at("configmaps", "garden").Get(t.Context(), "deleted-seeds", metav1.GetOptions{}); err == nil {
		if data, _, _ := unstructured.NestedMap(deleted.Object, "data"); len(data) > 0 {
			t.Errorf("deleted Seeds: %v", data)
		}
	} else if !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// accessCheckInterrupted ends a check while it runs: after Ctrl-C nothing is left, and after a kill the next
// check removes what is left.
func accessCheckInterrupted(t *testing.T, dir string) {
	w := worldOfItsOwn(t, "ci", dir)
	before := w.everything(t)
	throwaway := func(ctx context.Context) (string, error) {
		seeds, err := w.at("seeds", "").List(ctx, metav1.ListOptions{LabelSelector: "gardenlite.dev/access-check"})
		if err != nil || len(seeds.Items) == 0 {
			return "", err
		}
		return seeds.Items[0].GetName(), nil
	}
	left := ""
	for _, signal := range []os.Signal{os.Kill, os.Interrupt} {
		check := exec.Command(binary, "access", "check", "--data-dir", dir)
		must(t, check.Start())
		eventually(t, waitTimeout, func(ctx context.Context) error {
			name, err := throwaway(ctx)
			if err == nil && (name == "" || name == left) {
				err = fmt.Errorf("there is no new throwaway seed: %q", name)
			}
			return err
		})
		must(t, check.Process.Signal(signal))
		_ = check.Wait()
		if signal == os.Interrupt && check.ProcessState.ExitCode() != 130 {
			t.Errorf("exit status %d after Ctrl-C", check.ProcessState.ExitCode())
		}
		var err error
		if left, err = throwaway(t.Context()); err != nil || (left != "") != (signal == os.Kill) {
			t.Errorf("left after %s: %q, %v", signal, left, err)
		}
	}
	w.expectUnchanged(t, before)
}

// accessCheckWhileWriting: attacks are refused while objects come and go, move and refer to others.
func accessCheckWhileWriting(t *testing.T, dir string) {
	w := worldOfItsOwn(t, "cw", dir)
	w.entryName(t, w.b.name)
	w.createNeutralBinding(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writers sync.WaitGroup
	var changes atomic.Int64
	for i := range 10 {
		edge := w.changingEdge(t, i)
		writers.Go(func() {
			for ctx.Err() == nil {
				if err := errors.Join(edge.make(t.Context()), edge.take(t.Context())); err != nil {
					t.Errorf("%s: %v", edge.prize, err)
					return
				}
				changes.Add(2)
			}
		})
	}
	report := accessCheck(t, dir, 0, "--victim", w.b.name)
	cancel()
	writers.Wait()
	if report.Counts["refused"] < 54 || changes.Load() < 20 {
		t.Errorf("%v, %d changes", report.Counts, changes.Load())
	}
	t.Logf("%d changes during the check", changes.Load())
}
