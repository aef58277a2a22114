// Package operators simulates the operators of custom resources that Gardener's gardenlet creates in a seed: it writes the status
// of Etcd, Prometheus and Alertmanager as etcd-druid and prometheus-operator do once everything runs. Nothing runs for them.
//
// An operator starts once it is deployed. In a seed with gardenlite's own gardenlet, none is. The controllers run in the resource
// manager of the seed, which has all rights there and caches the metadata of Deployments.
package operators

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardenlite/gardenlite/internal/component"
)

// kind is a kind of custom resources with an operator.
type kind struct {
	schema.GroupVersionKind
	// conditions are True once everything runs.
	conditions []string
	// status returns the other fields of the status.
	status func(obj *unstructured.Unstructured, replicas int64) map[string]any
}

// kinds has the kinds by the names of the Deployments of their operators.
var kinds = map[string][]kind{
	"etcd-druid": {{
		schema.GroupVersionKind{Group: "druid.gardener.cloud", Version: "v1alpha1", Kind: "Etcd"},
		[]string{"Ready", "AllMembersReady", "AllMembersUpdated", "BackupReady", "DataVolumesReady"}, etcdStatus,
	}},
	"prometheus-operator": {{
		schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "Prometheus"},
		[]string{"Available", "Reconciled"}, monitoringStatus,
	}, {
		schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "Alertmanager"},
		[]string{"Available", "Reconciled"}, monitoringStatus,
	}},
}

func etcdStatus(obj *unstructured.Unstructured, replicas int64) map[string]any {
	return map[string]any{
		"observedGeneration": obj.GetGeneration(), "ready": true,
		"replicas": replicas, "currentReplicas": replicas, "readyReplicas": replicas,
		"etcd": map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": obj.GetName()},
	}
}

func monitoringStatus(_ *unstructured.Unstructured, replicas int64) map[string]any {
	return map[string]any{"paused": false, "replicas": replicas, "updatedReplicas": replicas, "availableReplicas": replicas,
		"unavailableReplicas": int64(0)}
}

// AddToManager adds the controller that starts operators to a manager.
func AddToManager(mgr manager.Manager, clk clock.PassiveClock) error {
	started := sync.Map{} // of schema.GroupVersionKind
	known := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return obj.GetNamespace() == constants.GardenNamespace && len(kinds[obj.GetName()]) > 0
	})
	return component.NewControllerBuilder(mgr, "operators").
		For(&appsv1.Deployment{}, builder.OnlyMetadata, builder.WithPredicates(known)).
		Complete(reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
			for _, kind := range kinds[request.Name] {
				if _, running := started.Load(kind.GroupVersionKind); running {
					continue
				}
				if _, err := mgr.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err != nil {
					return reconcile.Result{RequeueAfter: time.Second}, nil // it is not served yet
				}
				if err := start(mgr, clk, kind); err != nil {
					return reconcile.Result{}, err
				}
				started.Store(kind.GroupVersionKind, true)
			}
			return reconcile.Result{}, nil
		}))
}

// start starts the operator of a kind.
func start(mgr manager.Manager, clk clock.PassiveClock, kind kind) error {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind.GroupVersionKind)
	changed := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	err := component.NewControllerBuilder(mgr, kind.Kind).For(obj, builder.WithPredicates(changed)).
		Complete(&reconciler{mgr.GetClient(), clk, kind})
	if err != nil {
		return fmt.Errorf("adding the operator of %s: %w", kind.Kind, err)
	}
	return nil
}

type reconciler struct {
	client.Client
	clock clock.PassiveClock
	kind
}

// Reconcile writes the status of one object.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(r.GroupVersionKind)
	if err := r.Get(ctx, request.NamespacedName, obj); err != nil || obj.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := obj.DeepCopy()
	replicas, found, _ := unstructured.NestedInt64(obj.Object, "spec", "replicas")
	if !found {
		replicas = 1
	}
	status, _, _ := unstructured.NestedMap(obj.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	for field, value := range r.status(obj, replicas) {
		status[field] = value
	}
	status["conditions"] = r.wanted(obj)
	obj.Object["status"] = status
	if !equality.Semantic.DeepEqual(before.Object["status"], obj.Object["status"]) {
		if err := r.Status().Patch(ctx, obj, client.MergeFrom(before)); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("writing the status of %s %s: %w", r.Kind, request, err))
		}
	}
	return reconcile.Result{}, r.removeOperation(ctx, obj)
}

// wanted returns the conditions. Those that are True already keep their times.
func (r *reconciler) wanted(obj *unstructured.Unstructured) (all []any) {
	is, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	now := r.clock.Now().UTC().Format(time.RFC3339)
	for _, name := range r.conditions {
		condition := map[string]any{"type": name, "status": "True", "reason": "Simulated", "message": "Nothing runs for it.",
			"lastTransitionTime": now}
		if r.Kind == "Etcd" {
			condition["lastUpdateTime"] = now
		} else {
			condition["observedGeneration"] = obj.GetGeneration()
		}
		for _, current := range is {
			if fields, _ := current.(map[string]any); fields["type"] == name && fields["status"] == "True" {
				for _, time := range []string{"lastTransitionTime", "lastUpdateTime"} {
					if fields[time] != nil {
						condition[time] = fields[time]
					}
				}
			}
		}
		all = append(all, condition)
	}
	return all
}

// removeOperation removes the annotation with which the gardenlet asks for a reconciliation.
func (r *reconciler) removeOperation(ctx context.Context, obj *unstructured.Unstructured) error {
	if obj.GetAnnotations()[constants.GardenerOperation] == "" {
		return nil
	}
	before := obj.DeepCopy()
	annotations := obj.GetAnnotations()
	delete(annotations, constants.GardenerOperation)
	obj.SetAnnotations(annotations)
	if err := r.Patch(ctx, obj, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("removing the operation of %s %s: %w", r.Kind, client.ObjectKeyFromObject(obj), client.IgnoreNotFound(err))
	}
	return nil
}
