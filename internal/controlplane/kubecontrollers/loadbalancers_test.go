package kubecontrollers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// TestLoadBalancers: a Service of type LoadBalancer gets its cluster IP as address, unless another one writes it.
func TestLoadBalancers(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Service)
		want   string
	}{
		"a load balancer":      {func(*corev1.Service) {}, "10.0.0.7"},
		"another type":         {func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP }, ""},
		"with a class":         {func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To("x") }, ""},
		"without a cluster IP": {func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }, ""},
		"of others":            {func(s *corev1.Service) { s.Labels = map[string]string{"role": "others"} }, ""},
		"with an address": {func(s *corev1.Service) {
			s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "127.0.0.1"}}
		}, "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"},
				Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.7"}}
			test.change(service)
			index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			if err := index.Add(service); err != nil {
				t.Fatal(err)
			}
			client := fake.NewClientset(service)
			l := &loadBalancers{client: client, services: corelisters.NewServiceLister(index),
				excluded: labels.SelectorFromSet(labels.Set{"role": "others"})}
			if err := l.sync(t.Context(), cache.MetaObjectToName(service)); err != nil {
				t.Fatal(err)
			}
			now, err := client.CoreV1().Services("default").Get(t.Context(), "s", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, ingress := range now.Status.LoadBalancer.Ingress {
				got += ingress.IP
			}
			if got != test.want {
				t.Errorf("the address is %q, not %q", got, test.want)
			}
		})
	}
}
