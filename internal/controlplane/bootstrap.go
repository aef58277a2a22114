package controlplane

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	"k8s.io/klog/v2"
	schedulingv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/gardenlite/gardenlite/internal/retry"
)

const (
	// policyWriters is how many objects of the bootstrap policy are written concurrently. More do not help on two
	// cores.
	policyWriters = 4

	bootstrapRetry = 100 * time.Millisecond
)

// bootstrapHooks are the post-start hooks of kube-apiserver that create the objects of every cluster. kube-apiserver's
// own hooks wait a second before they begin, which is most of a start; these do the same immediately, under the same
// names.
var bootstrapHooks = map[string]func(context.Context, kubernetes.Interface) error{
	rbacrest.PostStartHookName:       reconcilePolicy,
	schedulingrest.PostStartHookName: createPriorityClasses,
}

// addBootstrapHooks adds the hooks to the last server of the chain. kube-apiserver's own must have been disabled.
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

// runBootstrapHook retries until the server ends: an error of a hook would end the process, in which other control
// planes may run. Until the hook has succeeded, the server's /readyz names it, and the log has the reason.
func runBootstrapHook(hook genericapiserver.PostStartHookContext, name string,
	ensure func(context.Context, kubernetes.Interface) error) error {
	client, err := kubernetes.NewForConfig(hook.LoopbackClientConfig)
	if err != nil {
		return fmt.Errorf("making the client for %s: %w", name, err)
	}
	var logged string
	_ = wait.PollUntilContextCancel(hook, bootstrapRetry, true, func(ctx context.Context) (bool, error) {
		err := ensure(ctx, client)
		if err != nil && ctx.Err() == nil && err.Error() != logged {
			logged = err.Error()
			klog.FromContext(ctx).Error(err, "Creating bootstrap objects failed, retrying", "hook", name)
		}
		return err == nil, nil
	})
	return nil
}

func createPriorityClasses(ctx context.Context, client kubernetes.Interface) error {
	for _, class := range schedulingv1.SystemPriorityClasses() {
		if _, err := client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// reconcilePolicy creates roles before bindings, because a binding to a missing role grants nothing.
func reconcilePolicy(ctx context.Context, client kubernetes.Interface) error {
	roles, bindings, err := listPolicy(ctx, client)
	if err != nil {
		return err
	}
	for _, steps := range [][]func() error{policyRoles(client, roles), policyBindings(client, bindings)} {
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(policyWriters)
		for _, step := range steps {
			group.Go(func() error { return retry.OnError(groupCtx, retry.DefaultBackoff, isTransient, step) })
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

func policyRoles(client kubernetes.Interface, clusterRoles rbacv1client.ClusterRoleInterface) (steps []func() error) {
	step := func(role reconciliation.RuleOwner, modifier reconciliation.RuleOwnerModifier) {
		steps = append(steps, func() error {
			_, err := (&reconciliation.ReconcileRoleOptions{Role: role, Client: modifier, Confirm: true}).Run()
			return err
		})
	}
	for _, role := range slices.Concat(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()) {
		step(reconciliation.ClusterRoleRuleOwner{ClusterRole: &role}, reconciliation.ClusterRoleModifier{Client: clusterRoles})
	}
	for _, roles := range bootstrappolicy.NamespaceRoles() {
		for _, role := range roles {
			step(reconciliation.RoleRuleOwner{Role: &role},
				reconciliation.RoleModifier{Client: client.RbacV1(), NamespaceClient: client.CoreV1().Namespaces()})
		}
	}
	return steps
}

func policyBindings(client kubernetes.Interface, clusterRoleBindings rbacv1client.ClusterRoleBindingInterface) (steps []func() error) {
	step := func(binding reconciliation.RoleBinding, modifier reconciliation.RoleBindingModifier) {
		steps = append(steps, func() error {
			_, err := (&reconciliation.ReconcileRoleBindingOptions{RoleBinding: binding, Client: modifier, Confirm: true}).Run()
			return err
		})
	}
	for _, binding := range slices.Concat(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()) {
		step(reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &binding},
			reconciliation.ClusterRoleBindingClientAdapter{Client: clusterRoleBindings})
	}
	for _, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, binding := range bindings {
			step(reconciliation.RoleBindingAdapter{RoleBinding: &binding},
				reconciliation.RoleBindingClientAdapter{Client: client.RbacV1(), NamespaceClient: client.CoreV1().Namespaces()})
		}
	}
	return steps
}

// listPolicy lists all cluster roles and bindings. The clients that it returns answer from these lists, so that a start
// at which nothing is missing makes two requests instead of one for each object.
func listPolicy(ctx context.Context, client kubernetes.Interface) (rbacv1client.ClusterRoleInterface,
	rbacv1client.ClusterRoleBindingInterface, error) {
	roles := &knownClusterRoles{client.RbacV1().ClusterRoles(), newKnown[*rbacv1.ClusterRole]()}
	bindings := &knownClusterRoleBindings{client.RbacV1().ClusterRoleBindings(), newKnown[*rbacv1.ClusterRoleBinding]()}
	fromCache := metav1.ListOptions{ResourceVersion: "0"} // the cache of this server, which has just been filled
	roleList, err := roles.List(ctx, fromCache)
	if err != nil {
		return nil, nil, err
	}
	bindingList, err := bindings.List(ctx, fromCache)
	if err != nil {
		return nil, nil, err
	}
	for i := range roleList.Items {
		roles.listed[roleList.Items[i].Name] = &roleList.Items[i]
	}
	for i := range bindingList.Items {
		bindings.listed[bindingList.Items[i].Name] = &bindingList.Items[i]
	}
	return roles, bindings, nil
}

// known has objects that were listed. It answers once for each name: a caller that reads an object again has found it
// outdated.
type known[T interface{ DeepCopy() T }] struct {
	listed map[string]T
	mu     sync.Mutex
	read   sets.Set[string]
}

func newKnown[T interface{ DeepCopy() T }]() *known[T] {
	return &known[T]{listed: map[string]T{}, read: sets.New[string]()}
}

type getter[T any] func(ctx context.Context, name string, options metav1.GetOptions) (T, error)

// get returns the listed object the first time, and reads the object from the API server after that.
func (k *known[T]) get(ctx context.Context, resource, name string, options metav1.GetOptions, live getter[T]) (T, error) {
	k.mu.Lock()
	again := k.read.Has(name)
	k.read.Insert(name)
	k.mu.Unlock()
	if again {
		return live(ctx, name, options)
	}
	obj, there := k.listed[name]
	if !there {
		return obj, apierrors.NewNotFound(rbacv1.Resource(resource), name)
	}
	return obj.DeepCopy(), nil
}

type knownClusterRoles struct {
	rbacv1client.ClusterRoleInterface
	*known[*rbacv1.ClusterRole]
}

func (c *knownClusterRoles) Get(ctx context.Context, name string, options metav1.GetOptions) (*rbacv1.ClusterRole, error) {
	return c.get(ctx, "clusterroles", name, options, c.ClusterRoleInterface.Get)
}

type knownClusterRoleBindings struct {
	rbacv1client.ClusterRoleBindingInterface
	*known[*rbacv1.ClusterRoleBinding]
}

func (c *knownClusterRoleBindings) Get(ctx context.Context, name string, options metav1.GetOptions) (*rbacv1.ClusterRoleBinding, error) {
	return c.get(ctx, "clusterrolebindings", name, options, c.ClusterRoleBindingInterface.Get)
}
