package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gardenlite/gardenlite/internal/landscape/leastprivilege"
)

// lesser is a user with rights of a component.
type lesser struct {
	kube kubernetes.Interface
	dyn  dynamic.Interface
}

// unlogged are rights of the controller-manager that admission and RBAC check for other requests. The audit log does
// not show these checks.
var unlogged = []struct {
	verb, resource string
	refusal        string // only the check says this
	request        func(context.Context, *lesser) error
}{
	{"escalate", "clusterroles", "attempting to grant RBAC permissions not currently held", func(ctx context.Context, a *lesser) error {
		_, err := a.kube.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "lp-asked"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}},
		}, dryRun)
		return err
	}},
	{"bind", "clusterroles", "attempting to grant RBAC permissions not currently held", func(ctx context.Context, a *lesser) error {
		_, err := a.kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "lp-asked"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		}, dryRun)
		return err
	}},
	{"approve", "signers", "user not permitted to approve requests with signerName", func(ctx context.Context, a *lesser) error {
		list, err := a.kube.CertificatesV1().CertificateSigningRequests().List(
			ctx, metav1.ListOptions{FieldSelector: "spec.signerName=" + certificatesv1.KubeAPIServerClientSignerName})
		if err != nil {
			return err
		}
		for i := range list.Items { // approved before, and so again
			csr := &list.Items[i]
			_, err := a.kube.CertificatesV1().CertificateSigningRequests().UpdateApproval(
				ctx, csr.Name, csr, metav1.UpdateOptions{DryRun: dryRun.DryRun})
			return err
		}
		return errors.New("there is no request for a certificate")
	}},
	{"get", "quotas", "may not read quotas", func(ctx context.Context, a *lesser) error {
		bindings := a.dyn.Resource(
			schema.GroupVersionResource{Group: "core.gardener.cloud", Version: "v1beta1", Resource: "secretbindings"}).Namespace("garden-lp")
		_, err := bindings.Patch(ctx, "lp", types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`),
			metav1.PatchOptions{DryRun: dryRun.DryRun})
		return err
	}},
}

var dryRun = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}

// askWithLess makes each of these requests as a user with all rights of the controller-manager, and as one with all
// of them but the one in question.
func (l *life) askWithLess(t *testing.T) {
	t.Helper()
	role, err := l.kube.RbacV1().ClusterRoles().Get(t.Context(), leastprivilege.ControllerManager, metav1.GetOptions{})
	must(t, err)
	whole := l.asker(t, "lp-whole", role.Rules)
	for _, right := range unlogged {
		less := l.asker(t, "lp-less-"+right.verb, without(role.Rules, right.verb, right.resource))
		eventually(t, waitTimeout, func(ctx context.Context) error { return right.request(ctx, whole) })
		eventually(t, waitTimeout, func(ctx context.Context) error {
			if err := right.request(ctx, less); err == nil || !strings.Contains(err.Error(), right.refusal) {
				return fmt.Errorf("without the right to %s %s: %v, not %q", right.verb, right.resource, err, right.refusal)
			}
			return nil
		})
	}
}

// asker creates a user with rules.
func (l *life) asker(t *testing.T, name string, rules []rbacv1.PolicyRule) *lesser {
	t.Helper()
	_, err := l.kube.RbacV1().ClusterRoles().Create(
		t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, created)
	must(t, err)
	_, err = l.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}, created)
	must(t, err)
	config := rest.CopyConfig(l.admin)
	config.Impersonate.UserName = name
	a := &lesser{}
	a.kube, err = kubernetes.NewForConfig(config)
	must(t, err)
	a.dyn, err = dynamic.NewForConfig(config)
	must(t, err)
	return a
}

func without(rules []rbacv1.PolicyRule, verb, resource string) (less []rbacv1.PolicyRule) {
	for _, rule := range rules {
		if !slices.Contains(rule.Resources, resource) {
			less = append(less, rule)
			continue
		}
		one, others := rule.DeepCopy(), rule.DeepCopy()
		one.Resources, one.Verbs = []string{resource}, slices.DeleteFunc(one.Verbs, func(v string) bool { return v == verb })
		others.Resources = slices.DeleteFunc(others.Resources, func(r string) bool { return r == resource })
		for _, part := range []*rbacv1.PolicyRule{one, others} {
			if len(part.Verbs) > 0 && len(part.Resources) > 0 {
				less = append(less, *part)
			}
		}
	}
	return less
}
