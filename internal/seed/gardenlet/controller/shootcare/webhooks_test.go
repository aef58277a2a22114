package shootcare

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestProblematicWebhooks(t *testing.T) {
	const fail, ignore = admissionregistrationv1.Fail, admissionregistrationv1.Ignore
	about := func(group string, resources ...string) webhook {
		return webhook{policy: ptr.To(fail), timeout: ptr.To[int32](10), rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: resources},
		}}}
	}
	with := func(w webhook, change func(*webhook)) webhook { change(&w); return w }
	except := func(namespace string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{namespace}}}}
	}
	for name, test := range map[string]struct {
		webhook webhook
		want    bool
	}{
		"pods":             {about("", "pods"), true},
		"everything":       {about("*", "*/*"), true},
		"all without subs": {about("", "*"), true},
		"a subresource":    {about("", "pods/status"), true},
		"another one":      {about("", "pods/exec"), false},
		"another resource": {about("example.com", "things"), false},
		"no policy":        {with(about("", "pods"), func(w *webhook) { w.policy = nil }), true},
		"may fail":         {with(about("", "pods"), func(w *webhook) { w.policy = ptr.To(ignore) }), false},
		"may fail, late":   {with(about("", "pods"), func(w *webhook) { w.policy, w.timeout = ptr.To(ignore), ptr.To[int32](16) }), true},
		"not kube-system":  {with(about("", "pods"), func(w *webhook) { w.namespace = except("kube-system") }), false},
		"not default":      {with(about("", "endpoints"), func(w *webhook) { w.namespace = except("default") }), true},
		"nodes, selected":  {with(about("", "nodes"), func(w *webhook) { w.namespace = except("kube-system") }), true},
		"cluster scope": {
			with(about("", "pods"), func(w *webhook) { w.rules[0].Scope = ptr.To(admissionregistrationv1.ClusterScope) }), false},
		"namespaces":       {about("", "namespaces"), true},
		"other namespaces": {with(about("", "namespaces"), func(w *webhook) { w.namespace = except("kube-system") }), false},
		"deletions":        {with(about("", "pods"), func(w *webhook) { w.rules[0].Operations[0] = admissionregistrationv1.Delete }), false},
		"leases, may fail": {with(about("coordination.k8s.io", "leases"), func(w *webhook) { w.policy = ptr.To(ignore) }), true},
		"leases, at once": {with(about("coordination.k8s.io", "leases"),
			func(w *webhook) { w.policy, w.timeout = ptr.To(ignore), ptr.To[int32](3) }), false},
		"objects with keys": {with(about("", "pods"),
			func(w *webhook) { w.object = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}} }), false},
		"broken selector": {with(about("", "pods"),
			func(w *webhook) { w.object = &metav1.LabelSelector{MatchLabels: map[string]string{"-": "!"}} }), true},
	} {
		if got := test.webhook.isProblematic(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
