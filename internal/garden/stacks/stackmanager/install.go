package stackmanager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/gardenlite/gardenlite/internal/garden/stacks/stackpackage"
	"github.com/gardenlite/gardenlite/internal/garden/stacks/v1alpha1"
)

// plan is the desired result of the installation of a package. It is complete before anything is changed.
type plan struct {
	// stack is the existing Stack, or a new one without a UID.
	stack    *v1alpha1.Stack
	crds     []*apiextensionsv1.CustomResourceDefinition
	rules    []rbacv1.PolicyRule
	warnings []string
}

// plan checks whether the package may be installed, returns the desired objects, and claims its CRDs by writing the
// Stack.
func (r *Reconciler) plan(ctx context.Context, install v1alpha1.Install, p *stackpackage.Package) (*plan, error) {
	r.claims.Lock()
	defer r.claims.Unlock()
	stacks := &v1alpha1.StackList{}
	if err := r.Live.List(ctx, stacks); err != nil {
		return nil, err
	}
	planned := &plan{stack: &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Namespace: install.GetNamespace(), Name: install.GetName()}}}
	for i := range stacks.Items {
		other := &stacks.Items[i]
		if other.Namespace != install.GetNamespace() || other.Name != install.GetName() {
			if err := checkOther(install, p, other); err != nil {
				return nil, err
			}
			continue
		}
		// An uninstallation that was taken back has left it.
		isLeft := metav1.GetControllerOf(other) == nil && other.Spec.PermissionScope == install.Scope()
		if !isLeft && !metav1.IsControlledBy(other, install) {
			return nil, refuse("the Stack %s is that of another install", other.Name)
		}
		planned.stack = other
	}
	for _, crd := range p.CRDs {
		merged, err := r.planCRD(ctx, crd, p)
		if err != nil {
			return nil, err
		}
		planned.crds = append(planned.crds, merged)
	}
	isNew := func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.UID == "" }
	if slices.ContainsFunc(planned.crds, isNew) {
		if err := r.checkNames(planned.crds); err != nil {
			return nil, err
		}
	}
	given := slices.Clone(p.CRDs)
	for _, name := range p.DependsOn {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := r.Get(ctx, client.ObjectKey{Name: name}, crd)
		switch {
		case apierrors.IsNotFound(err):
			if p.Owns(name) {
				continue
			}
			return nil, wait("waiting for the CRD %s, which the package depends on: install the stack that owns it", name)
		case err != nil:
			return nil, err
		case crd.Spec.Scope != apiextensionsv1.NamespaceScoped:
			planned.warnings = append(planned.warnings, fmt.Sprintf("dependsOn %s grants nothing: its instances are cluster-scoped", name))
		case !p.Owns(name):
			given = append(given, crd)
		}
	}
	planned.rules = rulesOf(given)
	if planned.stack.UID == "" {
		if err := r.checkFree(ctx, install, p); err != nil {
			return nil, err
		}
	}
	if err := r.checkAccepted(ctx, install, p, planned); err != nil {
		return nil, err
	}
	return planned, r.claim(ctx, install, p, planned)
}

// checkAccepted refuses a package if the API server refuses one of its objects. It asks with a dry run, before anything
// is written and before the controller that runs is ended, and not again once the package's controller is there.
func (r *Reconciler) checkAccepted(ctx context.Context, install v1alpha1.Install, p *stackpackage.Package,
	planned *plan) error {
	key := client.ObjectKeyFromObject(install)
	wanted := controllerOf(key, p)
	existing, err := r.controllers(ctx, key)
	if err != nil {
		return err
	}
	isThere := func(c client.Object) bool { return wanted != nil && isOfPackage(c, wanted) }
	if wanted == nil && len(existing) == 0 || slices.ContainsFunc(existing, isThere) ||
		planned.stack.Annotations[completedAnnotation] == p.Digest {
		return nil
	}
	role, binding := permissionsOf(key, install.Scope(), planned.rules)
	objects := []client.Object{serviceAccountOf(key), role, binding}
	if wanted != nil {
		objects = append(objects, wanted)
	}
	for _, object := range objects {
		existing := object.DeepCopyObject().(client.Object)
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(object), existing)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && planned.stack.UID != "" && !belongsTo(existing, planned.stack) {
			return taken(object)
		}
		object.SetLabels(labels.Merge(object.GetLabels(), stackLabels(key)))
		if err := accepted(object, r.Create(ctx, object, client.DryRunAll)); err != nil {
			return err
		}
	}
	for _, crd := range planned.crds {
		crd := crd.DeepCopy()
		if crd.UID == "" {
			err = r.Create(ctx, crd, client.DryRunAll)
		} else {
			err = r.Update(ctx, crd, client.DryRunAll)
		}
		if err := accepted(crd, err); err != nil {
			return err
		}
	}
	return nil
}

// accepted returns the refusal of an object by a dry run. That there is one already is found after its validation.
func accepted(object client.Object, err error) error {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		return refuse("the API server refuses the %s %s: %w", kindOf(object), object.GetName(), err)
	case apierrors.IsAlreadyExists(err):
		return nil
	}
	return err
}

// isOfPackage reports whether an existing controller is the wanted one, from the same package.
func isOfPackage(existing, wanted client.Object) bool {
	return existing.GetName() == wanted.GetName() && kindOf(existing) == kindOf(wanted) &&
		existing.GetAnnotations()[digestAnnotation] == wanted.GetAnnotations()[digestAnnotation]
}

// checkFree refuses an install if one of its objects exists already: the object belongs to another owner and may have
// permissions of its own.
func (r *Reconciler) checkFree(ctx context.Context, install v1alpha1.Install, p *stackpackage.Package) error {
	key := client.ObjectKeyFromObject(install)
	role, binding := permissionsOf(key, install.Scope(), nil)
	objects := []client.Object{serviceAccountOf(key), role, binding}
	if controller := controllerOf(key, p); controller != nil {
		objects = append(objects, controller)
	}
	for _, object := range objects {
		switch err := r.Live.Get(ctx, client.ObjectKeyFromObject(object), object); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return err
		case object.GetNamespace() == "" && object.GetLabels()[stackpackage.ManagedByLabel] == stackpackage.ManagedBy:
			// Cluster-scoped objects have no owner, and this name is unique to this install.
		case object.GetLabels()[stackpackage.ManagedByLabel] == stackpackage.ManagedBy:
			return waiting{fmt.Errorf("waiting for the deletion of the %s %s of another install", kindOf(object), object.GetName()), waitingRetry}
		default:
			return taken(object)
		}
	}
	return nil
}

// taken returns the refusal for an object that exists already and does not belong to the stack.
func taken(object client.Object) error {
	return refuse("the %s %s exists already and is not that of the stack: delete it, or choose another name for the install",
		kindOf(object), object.GetName())
}

// checkOther refuses a package that conflicts with another stack. An API group belongs to one stack, which is
// identified by its title and scope. The package stays refused when the other stack is uninstalled: what waited would
// take its group over, with what is left of it.
func checkOther(install v1alpha1.Install, p *stackpackage.Package, other *v1alpha1.Stack) error {
	sameStack := other.Spec.Title == p.App.Title && other.Spec.PermissionScope == p.App.PermissionScope
	if sameStack && install.Scope() == stackpackage.ClusterScope {
		return conflictf("the cluster stack %q is installed by %s/%s already, and there is one instance of it for all namespaces: "+
			"change the package there for another version", p.App.Title, other.Namespace, other.Name)
	}
	if sameStack && other.Namespace == install.GetNamespace() {
		return conflictf("the stack %q is installed by %s already: change the package there for another version", p.App.Title,
			other.Name)
	}
	for _, crd := range p.CRDs {
		for _, owned := range other.Spec.CustomResourceDefinitions {
			_, group, _ := strings.Cut(owned.Name, ".")
			if group == crd.Spec.Group && !sameStack {
				return conflictf("the CRD %s is of the group of another stack: %s/%s (%q, %s)", crd.Name, other.Namespace,
					other.Name,
					other.Spec.Title, other.Spec.PermissionScope)
			}
		}
	}
	return nil
}

// planCRD returns the CRD as it will be written.
func (r *Reconciler) planCRD(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, p *stackpackage.Package,
) (*apiextensionsv1.CustomResourceDefinition, error) {
	wanted := crd.DeepCopy()
	metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, stackVersionAnnotation, p.App.Version)
	current := &apiextensionsv1.CustomResourceDefinition{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(crd), current)
	switch {
	case apierrors.IsNotFound(err):
		return wanted, nil
	case err != nil:
		return nil, err
	case !current.DeletionTimestamp.IsZero():
		return nil, wait("waiting for the deletion of the CRD %s and its instances", crd.Name)
	}
	merged, err := mergeCRD(current, wanted)
	if err != nil {
		return nil, refuse("version %q of the stack cannot be installed: %w", p.App.Version, err)
	}
	return merged, nil
}

// claim writes the Stack. From then on the stack owns its CRDs.
func (r *Reconciler) claim(ctx context.Context, install v1alpha1.Install, p *stackpackage.Package, planned *plan) error {
	stack := planned.stack
	before := stack.DeepCopyObject().(*v1alpha1.Stack)
	if done, err := r.hasCompleted(ctx, stack, p); err != nil {
		return err
	} else if done {
		stack.Annotations = labels.Merge(stack.Annotations, map[string]string{completedAnnotation: p.Digest})
	}
	stack.Spec = record(stack, p, planned.rules)
	stack.Labels = labels.Merge(stack.Labels, map[string]string{stackpackage.ManagedByLabel: stackpackage.ManagedBy})
	if err := controllerutil.SetControllerReference(install, stack, r.Scheme()); err != nil {
		return err
	}
	if stack.UID == "" {
		return r.Create(ctx, stack)
	}
	if apiequality.Semantic.DeepEqual(before.Spec, stack.Spec) && apiequality.Semantic.DeepEqual(before.ObjectMeta, stack.ObjectMeta) {
		return nil
	}
	return r.Update(ctx, stack)
}

// hasCompleted reports whether the Job of the package has completed. It is recorded in the Stack, because the Job may have
// a time to live, and must not run again when it is deleted.
func (r *Reconciler) hasCompleted(ctx context.Context, stack *v1alpha1.Stack, p *stackpackage.Package) (bool, error) {
	if p.Job == nil {
		return false, nil
	}
	job := &batchv1.Job{}
	err := r.Get(ctx, client.ObjectKey{Namespace: stack.Namespace, Name: p.Job.Name}, job)
	return metav1.IsControlledBy(job, stack) && job.Annotations[digestAnnotation] == p.Digest &&
		slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue
		}), client.IgnoreNotFound(err)
}

// apply creates or updates the planned objects. It first deletes the controller of an earlier version and waits until
// its Pods have ended.
func (r *Reconciler) apply(ctx context.Context, install v1alpha1.Install, p *stackpackage.Package, planned *plan) error {
	key := client.ObjectKeyFromObject(install)
	wanted := controllerOf(key, p)
	if err := r.endControllers(ctx, key, wanted); err != nil {
		return err
	}
	if err := r.ensureListing(ctx, p.CRDs); err != nil {
		return err
	}
	if err := r.ensureCRDs(ctx, planned.crds); err != nil {
		return err
	}
	role, binding := permissionsOf(key, install.Scope(), planned.rules)
	for _, object := range []client.Object{serviceAccountOf(key), role, binding} {
		if err := r.ensure(ctx, planned.stack, object); err != nil {
			return err
		}
	}
	switch {
	case wanted == nil:
		return nil
	case planned.stack.Annotations[completedAnnotation] == p.Digest:
		return r.restoreCompleted(ctx, planned.stack, wanted)
	}
	if job, ok := wanted.(*batchv1.Job); ok {
		// Its time to live begins when its completion is recorded: a Job that is deleted before would run again.
		job.Spec.TTLSecondsAfterFinished = nil
	}
	return r.ensure(ctx, planned.stack, wanted)
}

// restoreCompleted restores the Job that has completed to its desired state if it exists. It does not create the Job:
// it would run again.
func (r *Reconciler) restoreCompleted(ctx context.Context, stack *v1alpha1.Stack, wanted client.Object) error {
	current := &batchv1.Job{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(wanted), current) // without its label it is not in the cache
	if err == nil && metav1.IsControlledBy(current, stack) {
		wanted.SetLabels(labels.Merge(wanted.GetLabels(), stackLabels(client.ObjectKeyFromObject(stack))))
		err = r.repair(ctx, current, wanted)
	}
	return client.IgnoreNotFound(err)
}

// ensureCRDs writes the CRDs. It returns a waiting error until the API server serves all of them.
func (r *Reconciler) ensureCRDs(ctx context.Context, planned []*apiextensionsv1.CustomResourceDefinition) error {
	var waits error
	for _, crd := range planned {
		err := r.ensureCRD(ctx, crd)
		var isWaiting waiting
		if err != nil && !errors.As(err, &isWaiting) {
			return err
		}
		waits = cmp.Or(waits, err)
	}
	return waits
}

// ensureCRD writes a CRD. It returns a waiting error until the API server serves it.
func (r *Reconciler) ensureCRD(ctx context.Context, planned *apiextensionsv1.CustomResourceDefinition) error {
	if planned.UID == "" {
		// Another install of the same stack may have created it after planning.
		if err := r.Create(ctx, planned); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		return wait("waiting for the CRD %s to be served", planned.Name)
	}
	current := &apiextensionsv1.CustomResourceDefinition{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(planned), current); err != nil {
		return err
	}
	if !apiequality.Semantic.DeepEqual(current.Spec, planned.Spec) ||
		!apiequality.Semantic.DeepEqual(current.Annotations, planned.Annotations) {
		if err := r.Update(ctx, planned); err != nil {
			return err
		}
		current = planned
	}
	for _, condition := range current.Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
			return nil
		}
		if condition.Type == apiextensionsv1.NamesAccepted && condition.Status == apiextensionsv1.ConditionFalse {
			return refuse("the names of the CRD %s are not accepted: %s", planned.Name, condition.Message)
		}
	}
	return wait("waiting for the CRD %s to be served", planned.Name)
}

// ensure creates an object of the stack or restores it to its desired state. It returns an error for an object with
// another owner and does not change it.
func (r *Reconciler) ensure(ctx context.Context, stack *v1alpha1.Stack, wanted client.Object) error {
	key := client.ObjectKeyFromObject(stack)
	wanted.SetLabels(labels.Merge(wanted.GetLabels(), stackLabels(key)))
	if wanted.GetNamespace() != "" {
		if err := controllerutil.SetControllerReference(stack, wanted, r.Scheme()); err != nil {
			return err
		}
	}
	current := reflect.New(reflect.TypeOf(wanted).Elem()).Interface().(client.Object)
	err := r.Get(ctx, client.ObjectKeyFromObject(wanted), current)
	if apierrors.IsNotFound(err) {
		if err = r.Create(ctx, wanted); !apierrors.IsAlreadyExists(err) {
			return err
		}
		// The object has another owner, or has lost the label that selects the objects in the cache.
		err = r.Live.Get(ctx, client.ObjectKeyFromObject(wanted), current)
	}
	if err != nil {
		return err
	}
	if !belongsTo(current, stack) {
		return taken(wanted)
	}
	if !current.GetDeletionTimestamp().IsZero() {
		return wait("waiting for the deletion of the %s %s", kindOf(wanted), wanted.GetName())
	}
	return r.repair(ctx, current, wanted)
}

// belongsTo reports whether an object belongs to the stack. A Stack cannot own cluster-scoped objects; their names are
// unique to the stack.
func belongsTo(object client.Object, stack *v1alpha1.Stack) bool {
	if object.GetNamespace() == "" {
		return strings.HasPrefix(object.GetName(), clusterRolePrefix)
	}
	return metav1.IsControlledBy(object, stack)
}

// repair restores the desired state of an object that another client has changed. It keeps other labels and
// annotations.
func (r *Reconciler) repair(ctx context.Context, current, wanted client.Object) error {
	before := current.DeepCopyObject().(client.Object)
	current.SetLabels(labels.Merge(current.GetLabels(), wanted.GetLabels()))
	if annotations := wanted.GetAnnotations(); len(annotations) > 0 {
		current.SetAnnotations(labels.Merge(current.GetAnnotations(), annotations))
	}
	switch current := current.(type) {
	case *rbacv1.Role:
		current.Rules = wanted.(*rbacv1.Role).Rules
	case *rbacv1.ClusterRole:
		current.Rules, current.AggregationRule = wanted.(*rbacv1.ClusterRole).Rules, nil
	case *rbacv1.RoleBinding:
		wanted := wanted.(*rbacv1.RoleBinding)
		if current.RoleRef != wanted.RoleRef { // is immutable
			return r.replace(ctx, current)
		}
		current.Subjects = wanted.Subjects
	case *rbacv1.ClusterRoleBinding:
		wanted := wanted.(*rbacv1.ClusterRoleBinding)
		if current.RoleRef != wanted.RoleRef {
			return r.replace(ctx, current)
		}
		current.Subjects = wanted.Subjects
	case *appsv1.Deployment:
		// The API server defaults the spec, so a comparison would always find a difference. Writing an unchanged spec
		// has no effect.
		current.Spec = wanted.(*appsv1.Deployment).Spec
	case *batchv1.Job:
		current.Spec.TTLSecondsAfterFinished = wanted.(*batchv1.Job).Spec.TTLSecondsAfterFinished
	}
	if apiequality.Semantic.DeepEqual(before, current) {
		return nil
	}
	return r.Update(ctx, current)
}

// replace deletes an object that cannot be repaired. The event of its deletion triggers its recreation.
func (r *Reconciler) replace(ctx context.Context, object client.Object) error {
	if err := r.Delete(ctx, object, client.Preconditions{UID: ptr.To(object.GetUID())}); client.IgnoreNotFound(err) != nil {
		return err
	}
	return wait("replacing the %s %s", kindOf(object), object.GetName())
}

// endControllers deletes the controllers of the stack except the wanted one, and returns a waiting error until they and
// their Pods are gone.
func (r *Reconciler) endControllers(ctx context.Context, key client.ObjectKey, wanted client.Object) error {
	old, err := r.controllers(ctx, key)
	if err != nil {
		return err
	}
	old = slices.DeleteFunc(old, func(c client.Object) bool {
		return wanted != nil && isOfPackage(c, wanted) && c.GetDeletionTimestamp().IsZero()
	})
	for _, controller := range old {
		if !controller.GetDeletionTimestamp().IsZero() {
			continue
		}
		err := r.Delete(ctx, controller, client.PropagationPolicy(metav1.DeletePropagationForeground),
			client.Preconditions{UID: ptr.To(controller.GetUID())})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if len(old) > 0 {
		return wait("waiting for the controller %s to end", old[0].GetName())
	}
	pods := &corev1.PodList{}
	if err := r.List(ctx, pods, client.InNamespace(key.Namespace), client.MatchingLabels{stackLabel: key.Name}); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if wanted == nil || pod.Annotations[digestAnnotation] != wanted.GetAnnotations()[digestAnnotation] {
			return wait("waiting for the Pod %s of the last controller to end", pod.Name)
		}
	}
	return nil
}

// controllers returns the Deployments and Jobs of a stack.
func (r *Reconciler) controllers(ctx context.Context, key client.ObjectKey) (all []client.Object, err error) {
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &batchv1.JobList{}} {
		if err := r.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels(stackLabels(key))); err != nil {
			return nil, err
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			all = append(all, item.(client.Object))
			return nil
		})
	}
	return all, nil
}
