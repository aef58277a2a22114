package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// lastError waits until a Shoot has an error with a code, and returns the state of its last operation.
func (s *shoot) lastError(t *testing.T, code string) (state string) {
	t.Helper()
	eventually(t, shootTimeout, func(context.Context) error {
		obj, err := s.get(t.Context())
		if err != nil {
			return err
		}
		if state = errorState(obj, code); state == "" {
			return fmt.Errorf("Shoot %s has no error %s: %v", s.name, code, obj.Object["status"])
		}
		return nil
	})
	return state
}

// errorState returns the state of the last operation of a Shoot that has an error with a code, otherwise "".
func errorState(obj *unstructured.Unstructured, code string) string {
	_, state, _ := lastOperation(obj)
	errs, _, _ := unstructured.NestedSlice(obj.Object, "status", "lastErrors")
	if (state == "Error" || state == "Failed") && slices.ContainsFunc(errs, func(e any) bool {
		codes, _, _ := unstructured.NestedStringSlice(e.(map[string]any), "codes")
		return slices.Contains(codes, code)
	}) {
		return state
	}
	return ""
}

// failsOnce creates a Shoot whose cloud fails once, and waits until the Shoot has the error. The gardenlet retries the
// operation 200 ms later: a watch sees the error nevertheless.
func (l *landscape) failsOnce(t *testing.T, name, code, text string) *shoot {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), shootTimeout)
	defer cancel()
	watched, err := l.watched(t, "shoots", shootNamespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	must(t, err)
	defer watched.Stop()
	s := l.newShootWith(t, name, map[string]string{"gardenlite.dev/fail": "once:" + code + " " + text})
	for event := range watched.ResultChan() {
		if obj, ok := event.Object.(*unstructured.Unstructured); ok && errorState(obj, code) != "" {
			return s
		}
	}
	t.Fatalf("Shoot %s had no error %s: %v", name, code, s.must(t).Object["status"])
	return nil
}

// newShootWith creates a Shoot like the sample with annotations.
func (l *landscape) newShootWith(t *testing.T, name string, annotations map[string]string) *shoot {
	t.Helper()
	object := sampleShoot(t, name).Object
	all := map[string]any{}
	for key, value := range annotations {
		all[key] = value
	}
	object["metadata"].(map[string]any)["annotations"] = all
	l.create(t, "shoots", object)
	return &shoot{l: l, name: name}
}

// TestShootFails makes the simulated cloud slow, fail once, and fail for good: the Shoot reports why, with
// Gardener's codes, the operation is retried, and the Shoot can be deleted at any time.
func TestShootFails(t *testing.T) {
	t.Parallel()
	l := sharedLandscape(t)
	t.Run("slow", func(t *testing.T) {
		s := l.newShootWith(t, "slow", map[string]string{"gardenlite.dev/delay": "3s"})
		begin := time.Now()
		s.waitForSucceeded(t)
		if took := time.Since(begin); took < 3*time.Second {
			t.Errorf("it took %s", took)
		}
		s.delete(t)
		s.waitGone(t)
	})
	t.Run("fails once", func(t *testing.T) {
		s := l.failsOnce(t, "once", "ERR_RETRYABLE_INFRA_DEPENDENCIES", "the load balancer is in use")
		obj := s.waitForSucceeded(t)
		if errs, _, _ := unstructured.NestedSlice(obj.Object, "status", "lastErrors"); len(errs) > 0 {
			t.Errorf("it has succeeded, and there are errors: %v", errs)
		}
		s.delete(t)
		s.waitGone(t)
	})
	t.Run("fails for good, until it is retried", func(t *testing.T) {
		s := l.newShootWith(t, "failed", map[string]string{"gardenlite.dev/fail": "always:ERR_INFRA_QUOTA_EXCEEDED no more networks"})
		if state := s.lastError(t, "ERR_INFRA_QUOTA_EXCEEDED"); state != "Failed" {
			t.Errorf("an error that a user has to fix leaves the Shoot %s", state)
		}
		s.patch(t, `{"metadata":{"annotations":{"gardenlite.dev/fail":null,"gardener.cloud/operation":"retry"}}}`)
		s.waitForSucceeded(t)
		s.delete(t)
		s.waitGone(t)
	})
	t.Run("is deleted while it fails", func(t *testing.T) {
		s := l.newShootWith(t, "broken", map[string]string{"gardenlite.dev/fail": "always:ERR_RETRYABLE_INFRA_DEPENDENCIES broken"})
		s.lastError(t, "ERR_RETRYABLE_INFRA_DEPENDENCIES")
		s.delete(t)
		s.lastError(t, "ERR_RETRYABLE_INFRA_DEPENDENCIES")
		s.patch(t, `{"metadata":{"annotations":{"gardenlite.dev/fail":null}}}`)
		s.waitGone(t)
	})
	l.checkNothingForbidden(t)
}
