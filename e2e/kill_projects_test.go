package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// The state of a project, as far as its client knows.
const (
	projectMade    = "created"
	projectGone    = "deleted"
	projectUnknown = "asked for, not answered"
)

// fates are the states of all projects, by name.
type fates struct {
	sync.Mutex
	of map[string]string
}

func (f *fates) set(name, fate string) {
	f.Lock()
	defer f.Unlock()
	f.of[name] = fate
}

// killedUnderProjects kills the process while projects are created and deleted, ten at a time. Acknowledged
// requests take effect: a project has everything that it has in an undisturbed landscape, or nothing of it is left.
func (l *landscape) killedUnderProjects(t *testing.T, random *rand.Rand) {
	before := l.mustInventory(t)
	const example = "k-example"
	must(t, l.createProject(t.Context(), example))
	var whole string
	eventually(t, waitTimeout, func(ctx context.Context) error {
		if err := l.projectIsReady(ctx, example); err != nil {
			return err
		}
		all, err := l.inventory(ctx) // read after the project is ready, so that nothing is missing
		whole = partsOf(all, example)
		for _, late := range []string{"serviceaccounts garden-PROJECT/default", "configmaps garden-PROJECT/kube-root-ca.crt"} {
			if err == nil && !strings.Contains(whole, late) { // Kubernetes makes it for the namespace, at any time
				err = fmt.Errorf("no %s in %s", late, whole)
			}
		}
		return err
	})
	must(t, l.deleteProject(t.Context(), example))
	l.becomes(t, before, "after the example")

	projects := &fates{of: map[string]string{}}
	for round := range kills() {
		delay := within(random, 1500*time.Millisecond)
		t.Logf("killed %s after the work began", delay)
		l.workUntilKilled(t, round, delay, projects)
		l.up(t)
		l.checkProjects(t, projects, whole)
	}
	for name := range projects.of {
		if err := l.deleteProject(t.Context(), name); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
	l.becomes(t, before, "after all projects were deleted")
}

// workUntilKilled creates ten projects, deletes every other one of them as soon as it exists, and deletes those that
// are left from earlier rounds.
func (l *landscape) workUntilKilled(t *testing.T, round int, delay time.Duration, projects *fates) {
	t.Helper()
	var workers sync.WaitGroup
	remove := func(name string) {
		projects.set(name, projectUnknown)
		if l.deleteProject(t.Context(), name) == nil {
			projects.set(name, projectGone)
		}
	}
	var former []string
	for name, fate := range projects.of {
		if fate == projectMade {
			former = append(former, name)
		}
	}
	for _, name := range former {
		workers.Go(func() { remove(name) })
	}
	for i := range 10 {
		name := fmt.Sprintf("k-%02d-%d", round, i)
		workers.Go(func() {
			projects.set(name, projectUnknown)
			if l.createProject(t.Context(), name) != nil {
				return
			}
			projects.set(name, projectMade)
			if i%2 == 0 {
				remove(name)
			}
		})
	}
	l.killAfter(delay)
	workers.Wait()
}

func (l *landscape) createProject(ctx context.Context, name string) error {
	member := func(role string) map[string]any {
		return map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": role + "@example.com", "role": role}
	}
	_, err := l.dyn.Resource(projectsResource).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"namespace": "garden-" + name,
			"members": []any{member("admin"), member("viewer"), member("uam"), member("serviceaccountmanager")}},
	}}, created)
	return err
}

func (l *landscape) deleteProject(ctx context.Context, name string) error {
	projects := l.dyn.Resource(projectsResource)
	if _, err := projects.Patch(ctx, name, types.MergePatchType, confirmed, metav1.PatchOptions{}); err != nil {
		return err
	}
	return projects.Delete(ctx, name, metav1.DeleteOptions{})
}

func (l *landscape) projectIsReady(ctx context.Context, name string) error {
	project, err := l.dyn.Resource(projectsResource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading Project %s: %w", name, err)
	}
	if phase, _, _ := unstructured.NestedString(project.Object, "status", "phase"); phase != "Ready" {
		return fmt.Errorf("Project %s is %q", name, phase)
	}
	return nil
}

// partsOf returns all objects of a project or in its namespace, with PROJECT for its name.
func partsOf(inventory map[string]bool, name string) string {
	parts := map[string]bool{}
	for key := range inventory {
		if strings.Contains(key, name) {
			parts[strings.ReplaceAll(key, name, "PROJECT")] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(parts)), "\n")
}

// checkProjects waits until all acknowledged requests have taken effect.
func (l *landscape) checkProjects(t *testing.T, projects *fates, whole string) {
	t.Helper()
	n := map[string]int{}
	for _, fate := range projects.of {
		n[fate]++
	}
	t.Logf("projects: %v", n)
	eventually(t, waitTimeout, func(context.Context) error {
		ctx := t.Context() // so that the last error is not the timeout
		all, err := l.inventory(ctx)
		if err != nil {
			return err
		}
		for name, fate := range projects.of {
			parts := partsOf(all, name)
			switch {
			case fate == projectGone && parts != "":
				return fmt.Errorf("Project %s was deleted; there are %s", name, parts)
			case fate == projectMade && parts != whole:
				return fmt.Errorf("Project %s was created; there are %s\nexpected %s", name, parts, whole)
			case fate == projectMade:
				if err := l.projectIsReady(ctx, name); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
