package kubecontrollers

import (
	"context"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"
)

// The defaults of kube-controller-manager.
const (
	autoscalerSyncPeriod            = 15 * time.Second
	autoscalerStabilization         = 5 * time.Minute
	autoscalerTolerance             = 0.1
	autoscalerCPUInitialization     = 5 * time.Minute
	autoscalerInitialReadinessDelay = 30 * time.Second
)

func newHorizontalPodAutoscalers(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	const name = "horizontal-pod-autoscaler"
	config, err := c.cfg.ClientConfig(name, serviceAccountUser+name, serviceAccountGroups...)
	if err != nil {
		return nil, err
	}
	scales, err := newScales(c, client, config)
	if err != nil {
		return nil, err
	}
	resources, err := resourceclient.NewForConfigAndClient(config, client.http)
	if err != nil {
		return nil, err
	}
	external, err := external_metrics.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	versions := custom_metrics.NewAvailableAPIsGetter(client.Discovery())
	custom := custom_metrics.NewForConfig(config, c.mapper, versions)
	all := c.informers.all
	a := podautoscaler.NewHorizontalController(ctx, client.CoreV1(), scales, client.AutoscalingV2(), c.mapper,
		metrics.NewRESTMetricsClient(resources, custom, external),
		hold(h, all.Autoscaling().V2().HorizontalPodAutoscalers()), hold(h, all.Core().V1().Pods()),
		autoscalerSyncPeriod, autoscalerStabilization, autoscalerTolerance, autoscalerCPUInitialization, autoscalerInitialReadinessDelay)
	return together(
		func(ctx context.Context) {
			custom_metrics.PeriodicallyInvalidate(versions, autoscalerSyncPeriod, ctx.Done())
		},
		func(ctx context.Context) { a.Run(ctx, 5) },
	), nil
}

// newScales returns a client for the scale subresource of any resource.
func newScales(c *Controllers, client *client, config *rest.Config) (scale.ScalesGetter, error) {
	base, err := rest.UnversionedRESTClientForConfigAndClient(dynamic.ConfigFor(config), client.http)
	if err != nil {
		return nil, err
	}
	return scale.New(base, c.mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client.Discovery())), nil
}
