package controlplane

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	schedulingv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"golang.org/x/sync/errgroup"
)

const (
	// policyWriters write the bootstrap policy side by side. More do not help on two cores.
	policyWriters = 4

	bootstrapRetry   = 100 * time.Millisecond
	bootstrapTimeout = 30 * time.Second
)

// bootstrapHooks are the post-start hooks of kube-apiserver that create what every cluster has. Its own wait a second
// before they begin, which is most of a start; these do the same at once, under the same names.
var bootstrapHooks = map[string]func(context.Context, kubernetes.Interface) error{
	rbacrest.PostStartHookName:       reconcilePolicy,
	schedulingrest.PostStartHookName: createPriorityClasses,
}

// addBootstrapHooks replaces kube-apiserver's hooks, which must have been disabled, on the last server of the chain.
func addBootstrapHooks(server *genericapiserver.GenericAPIServer) error {
	for name, ensure := range bootstrapHooks {
		err := server.AddPostStartHook(name, func(hook genericapiserver.PostStartHookContext) error {
			return runBootstrapHook(hook, name, ensure)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func runBootstrapHook(hook genericapiserver.PostStartHookContext, name string, ensure func(context.Context, kubernetes.Interface) error) error {
	client, err := kubernetes.NewForConfig(hook.LoopbackClientConfig)
	if err != nil {
		return fmt.Errorf("making the client for %s: %w", name, err)
	}
	var last error
	err = wait.PollUntilContextTimeout(hook, bootstrapRetry, bootstrapTimeout, true, func(ctx context.Context) (bool, error) {
		last = ensure(ctx, client)
		return last == nil, nil
	})
	if err != nil && hook.Err() == nil {
		return fmt.Errorf("%s: %w (%w)", name, err, last)
	}
	return nil
}

func createPriorityClasses(ctx context.Context, client kubernetes.Interface) error {
	for _, class := range schedulingv1.SystemPriorityClasses() {
		if _, err := client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// reconcilePolicy goes through roles before bindings, because a binding to a role that is not there yet gives nothing.
func reconcilePolicy(ctx context.Context, client kubernetes.Interface) error {
	for _, steps := range [][]func() error{policyRoles(client), policyBindings(client)} {
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(policyWriters)
		for _, step := range steps {
			group.Go(func() error {
				if groupCtx.Err() != nil {
					return groupCtx.Err()
				}
				return retry.OnError(retry.DefaultBackoff, isTransient, step)
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func isTransient(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsAlreadyExists(err)
}

func policyRoles(client kubernetes.Interface) (steps []func() error) {
	step := func(role reconciliation.RuleOwner, modifier reconciliation.RuleOwnerModifier) {
		steps = append(steps, func() error {
			_, err := (&reconciliation.ReconcileRoleOptions{Role: role, Client: modifier, Confirm: true}).Run()
			return err
		})
	}
	for _, role := range slices.Concat(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()) {
		step(reconciliation.ClusterRoleRuleOwner{ClusterRole: &role}, reconciliation.ClusterRoleModifier{Client: client.RbacV1().ClusterRoles()})
	}
	for _, roles := range bootstrappolicy.NamespaceRoles() {
		for _, role := range roles {
			step(reconciliation.RoleRuleOwner{Role: &role}, reconciliation.RoleModifier{Client: client.RbacV1(), NamespaceClient: client.CoreV1().Namespaces()})
		}
	}
	return steps
}

func policyBindings(client kubernetes.Interface) (steps []func() error) {
	step := func(binding reconciliation.RoleBinding, modifier reconciliation.RoleBindingModifier) {
		steps = append(steps, func() error {
			_, err := (&reconciliation.ReconcileRoleBindingOptions{RoleBinding: binding, Client: modifier, Confirm: true}).Run()
			return err
		})
	}
	for _, binding := range slices.Concat(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()) {
		step(reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &binding}, reconciliation.ClusterRoleBindingClientAdapter{Client: client.RbacV1().ClusterRoleBindings()})
	}
	for _, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, binding := range bindings {
			step(reconciliation.RoleBindingAdapter{RoleBinding: &binding}, reconciliation.RoleBindingClientAdapter{Client: client.RbacV1(), NamespaceClient: client.CoreV1().Namespaces()})
		}
	}
	return steps
}
