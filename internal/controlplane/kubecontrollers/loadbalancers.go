package kubecontrollers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// loadBalancers gives Services of type LoadBalancer an address, as a cloud does: their cluster IP, which is unique and, as that of a
// load balancer here, leads nowhere. Services with a class are others'.
type loadBalancers struct {
	client   kubernetes.Interface
	services corelisters.ServiceLister
	excluded labels.Selector
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

func newLoadBalancers(_ context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	services := hold(h, c.informers.all.Core().V1().Services())
	l := &loadBalancers{client: client, services: services.Lister(), excluded: c.cfg.LoadBalancersOfOthers,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](100*time.Millisecond, time.Minute))}
	enqueue := func(obj any) {
		if service, ok := obj.(*corev1.Service); ok && l.missing(service) {
			l.queue.Add(cache.MetaObjectToName(service))
		}
	}
	if _, err := services.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, now any) { enqueue(now) }}); err != nil {
		return nil, err
	}
	return runFunc(func(ctx context.Context) {
		defer context.AfterFunc(ctx, l.queue.ShutDown)()
		for l.next(ctx) {
		}
	}), nil
}

// missing reports whether a Service has to get an address.
func (l *loadBalancers) missing(service *corev1.Service) bool {
	return service.Spec.Type == corev1.ServiceTypeLoadBalancer && service.Spec.LoadBalancerClass == nil && service.DeletionTimestamp == nil &&
		len(service.Status.LoadBalancer.Ingress) == 0 && service.Spec.ClusterIP != "" && service.Spec.ClusterIP != corev1.ClusterIPNone &&
		(l.excluded == nil || !l.excluded.Matches(labels.Set(service.Labels)))
}

func (l *loadBalancers) next(ctx context.Context) bool {
	key, shutdown := l.queue.Get()
	if shutdown {
		return false
	}
	defer l.queue.Done(key)
	if err := l.sync(ctx, key); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Cannot give a Service the address of a load balancer", "service", key)
		l.queue.AddRateLimited(key)
		return true
	}
	l.queue.Forget(key)
	return true
}

func (l *loadBalancers) sync(ctx context.Context, key cache.ObjectName) error {
	service, err := l.services.Services(key.Namespace).Get(key.Name)
	if err != nil || !l.missing(service) {
		return nil // it is gone
	}
	service = service.DeepCopy()
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: service.Spec.ClusterIP}}
	if _, err := l.client.CoreV1().Services(key.Namespace).UpdateStatus(ctx, service, metav1.UpdateOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of Service %s: %w", key, err)
	}
	return nil
}
