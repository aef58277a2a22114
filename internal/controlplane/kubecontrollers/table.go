package kubecontrollers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	certificatesinformers "k8s.io/client-go/informers/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/bootstrap"
	"k8s.io/kubernetes/pkg/controller/certificates/cleaner"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/certificates/signer"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	serviceaccountcontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	quotainstall "k8s.io/kubernetes/pkg/quota/v1/install"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

const (
	// discoverySync is how often the controllers for all resources look for new resources.
	discoverySync = 2 * time.Second
	// certificateLife is the lifetime of certificates that controllers sign, if the request has none.
	certificateLife = 365 * 24 * time.Hour
	namespaceSync   = 5 * time.Minute
	// quotaSync is how often quotas are recalculated, from caches. A quota for a resource that is served only after the
	// quota was created takes effect then.
	quotaSync = 30 * time.Second
)

// run is a part of a controller that runs until the context is cancelled.
type run = func(context.Context)

// table has the controllers, by their names in kube-controller-manager, and their service accounts in kube-system. The
// token controller has none, as in a kube-controller-manager, because it creates the tokens of the others.
var table = []struct {
	name, serviceAccount string
	new                  func(context.Context, *Controllers, *client) ([]run, error)
}{
	{names.NamespaceController, "namespace-controller", newNamespaces},
	{names.GarbageCollectorController, "generic-garbage-collector", newGarbageCollector},
	{names.ServiceAccountController, "service-account-controller", newServiceAccounts},
	{names.ServiceAccountTokenController, "", newTokens},
	{names.RootCACertificatePublisherController, "root-ca-cert-publisher", newRootCAPublisher},
	{names.ClusterRoleAggregationController, "clusterrole-aggregation-controller", newAggregation},
	{names.CertificateSigningRequestSigningController, "certificate-controller", newSigners},
	{names.CertificateSigningRequestCleanerController, "certificate-controller", newCSRCleaner},
	{names.BootstrapSignerController, "bootstrap-signer", newBootstrapSigner},
	{names.TokenCleanerController, "token-cleaner", newTokenCleaner},
	{names.ResourceQuotaController, "resourcequota-controller", newQuota},
	{names.CertificateSigningRequestApprovingController, "certificate-controller", newCSRApprover},
	{servingApproverController, servingApproverAccount, newServingApprover},
}

// forNodes are the controllers that run only in clusters with nodes.
var forNodes = sets.New(names.CertificateSigningRequestApprovingController, servingApproverController)

func newNamespaces(ctx context.Context, c *Controllers, client *client) ([]run, error) {
	n := namespace.NewNamespaceController(ctx, client, client.metadata, c.discovery.ServerPreferredNamespacedResources,
		c.informers.all.Core().V1().Namespaces(), namespaceSync, corev1.FinalizerKubernetes)
	return []run{func(ctx context.Context) { n.Run(ctx, 5) }}, nil
}

func newGarbageCollector(ctx context.Context, c *Controllers, client *client) ([]run, error) {
	gc, err := garbagecollector.NewGarbageCollector(ctx, client, client.metadata, c.mapper,
		garbagecollector.DefaultIgnoredResources(), &c.informers, c.started)
	if err != nil {
		return nil, err
	}
	return []run{
		func(ctx context.Context) { gc.Run(ctx, 5, time.Minute) },
		func(ctx context.Context) { gc.Sync(ctx, c.discovery, discoverySync) },
	}, nil
}

func newServiceAccounts(ctx context.Context, c *Controllers, client *client) ([]run, error) {
	core := c.informers.all.Core().V1()
	s, err := serviceaccountcontroller.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(), client,
		serviceaccountcontroller.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return nil, err
	}
	return []run{func(ctx context.Context) { s.Run(ctx, 1) }}, nil
}

func newTokens(ctx context.Context, c *Controllers, client *client) ([]run, error) {
	key, err := keyutil.PrivateKeyFromFile(c.cfg.ServiceAccountKeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the key for service account tokens: %w", err)
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, err
	}
	t, err := serviceaccountcontroller.NewTokensController(klog.FromContext(ctx), c.informers.all.Core().V1().ServiceAccounts(),
		c.informers.tokens.Core().V1().Secrets(), client,
		serviceaccountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: c.cfg.RootCA})
	if err != nil {
		return nil, err
	}
	return []run{func(ctx context.Context) { t.Run(ctx, 2) }}, nil
}

func newRootCAPublisher(_ context.Context, c *Controllers, client *client) ([]run, error) {
	p, err := rootcacertpublisher.NewPublisher(c.informers.rootCAs.Core().V1().ConfigMaps(),
		c.informers.all.Core().V1().Namespaces(), client, c.cfg.RootCA)
	if err != nil {
		return nil, err
	}
	return []run{func(ctx context.Context) { p.Run(ctx, 1) }}, nil
}

func newAggregation(_ context.Context, c *Controllers, client *client) ([]run, error) {
	a := clusterroleaggregation.NewClusterRoleAggregation(c.informers.all.Rbac().V1().ClusterRoles(), client.RbacV1())
	return []run{func(ctx context.Context) { a.Run(ctx, 5) }}, nil
}

func newSigners(ctx context.Context, c *Controllers, client *client) (runs []run, err error) {
	requests := c.informers.all.Certificates().V1().CertificateSigningRequests()
	for _, newSigner := range []func(context.Context, kubernetes.Interface, certificatesinformers.CertificateSigningRequestInformer,
		string, string, time.Duration) (*signer.CSRSigningController, error){
		signer.NewKubeAPIServerClientCSRSigningController,
		signer.NewKubeletClientCSRSigningController,
		signer.NewKubeletServingCSRSigningController,
		signer.NewLegacyUnknownCSRSigningController,
	} {
		s, err := newSigner(ctx, client, requests, c.cfg.SigningCertFile, c.cfg.SigningKeyFile, certificateLife)
		if err != nil {
			return nil, err
		}
		runs = append(runs, func(ctx context.Context) { s.Run(ctx, 2) })
	}
	return runs, nil
}

func newCSRCleaner(_ context.Context, c *Controllers, client *client) ([]run, error) {
	cc := cleaner.NewCSRCleanerController(client.CertificatesV1().CertificateSigningRequests(),
		c.informers.all.Certificates().V1().CertificateSigningRequests())
	return []run{func(ctx context.Context) { cc.Run(ctx, 1) }}, nil
}

func newBootstrapSigner(_ context.Context, c *Controllers, client *client) ([]run, error) {
	s, err := bootstrap.NewSigner(client, c.informers.bootstrapTokens.Core().V1().Secrets(),
		c.informers.public.Core().V1().ConfigMaps(), bootstrap.DefaultSignerOptions())
	if err != nil {
		return nil, err
	}
	return []run{s.Run}, nil
}

func newTokenCleaner(_ context.Context, c *Controllers, client *client) ([]run, error) {
	t, err := bootstrap.NewTokenCleaner(client, c.informers.bootstrapTokens.Core().V1().Secrets(), bootstrap.DefaultTokenCleanerOptions())
	if err != nil {
		return nil, err
	}
	return []run{t.Run}, nil
}

func newQuota(ctx context.Context, c *Controllers, client *client) ([]run, error) {
	configuration, err := quotainstall.NewQuotaConfigurationForControllers(
		generic.ListerFuncForResourceFunc(c.informers.ForResource), c.informers.all)
	if err != nil {
		return nil, err
	}
	discover := c.discovery.ServerPreferredNamespacedResources
	q, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     c.informers.all.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(quotaSync),
		InformerFactory:           &c.informers,
		ReplenishmentResyncPeriod: controller.StaticResyncPeriodFunc(resync),
		DiscoveryFunc:             discover,
		IgnoredResourcesFunc:      configuration.IgnoredResources,
		InformersStarted:          c.started,
		Registry:                  generic.NewRegistry(configuration.Evaluators()),
		UpdateFilter:              quotainstall.DefaultUpdateFilter(),
	})
	if err != nil {
		return nil, err
	}
	return []run{
		func(ctx context.Context) { q.Run(ctx, 2) },
		func(ctx context.Context) { q.Sync(ctx, discover, discoverySync) },
	}, nil
}
