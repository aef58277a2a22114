package kubecontrollers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
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

	"github.com/gardenlite/gardenlite/internal/controlplane/certwatch"
	"github.com/gardenlite/gardenlite/internal/controlplane/quirks"
)

const (
	// collectorSync is how often the garbage collector looks for new resources: Kubernetes' does so every 30 s.
	collectorSync = 5 * time.Second
	// certificateLife is the lifetime of certificates that controllers sign, if the request has none.
	certificateLife = 365 * 24 * time.Hour
	namespaceSync   = 5 * time.Minute
	// quotaSync is how often quotas are recalculated, from caches, and new resources are looked for. A quota for a resource
	// that is served only after the quota was created takes effect then.
	quotaSync = 30 * time.Second
)

// table has the controllers that run in every cluster. The token controller has no service account, as in a
// kube-controller-manager, because it creates the tokens of the others.
var table = []definition{
	{names.NamespaceController, "namespace-controller", 5, nil, newNamespaces},
	{names.GarbageCollectorController, "generic-garbage-collector", 0, nil, newGarbageCollector},
	{names.ServiceAccountController, "service-account-controller", 1, nil, newServiceAccounts},
	{names.ServiceAccountTokenController, "", 2, nil, newTokens},
	{names.RootCACertificatePublisherController, "root-ca-cert-publisher", 1, nil, newRootCAPublisher},
	{names.ClusterRoleAggregationController, "clusterrole-aggregation-controller", 5, nil, newAggregation},
	{names.CertificateSigningRequestSigningController, "certificate-controller", 0, nil, newSigners},
	{names.CertificateSigningRequestCleanerController, "certificate-controller", 1, nil, newCSRCleaner},
	{names.BootstrapSignerController, "bootstrap-signer", 0, nil, newBootstrapSigner},
	{names.TokenCleanerController, "token-cleaner", 0, nil, newTokenCleaner},
	{names.ResourceQuotaController, "resourcequota-controller", 0, nil, newQuota},
	{names.CertificateSigningRequestApprovingController, "certificate-controller", certificateWorkers, nil, newCSRApprover},
	{servingApproverController, servingApproverAccount, certificateWorkers, nil, newServingApprover},
}

// forNodes are the controllers that run only in clusters with nodes.
var forNodes = sets.New(names.CertificateSigningRequestApprovingController, servingApproverController)

func newNamespaces(ctx context.Context, c *Controllers, client *client, _ *handlers) (runner, error) {
	return namespace.NewNamespaceController(ctx, client, client.metadata, c.discovery.ServerPreferredNamespacedResources,
		c.informers.all.Core().V1().Namespaces(), namespaceSync, corev1.FinalizerKubernetes), nil
}

func newGarbageCollector(ctx context.Context, c *Controllers, client *client, _ *handlers) (runner, error) {
	gc, err := garbagecollector.NewGarbageCollector(ctx, client, client.metadata, c.mapper,
		garbagecollector.DefaultIgnoredResources(), &c.informers, c.started)
	if err != nil {
		return nil, err
	}
	return together(
		func(ctx context.Context) { gc.Run(ctx, 5, time.Minute) },
		func(ctx context.Context) { gc.Sync(ctx, c.discovery, collectorSync) },
	), nil
}

func newServiceAccounts(ctx context.Context, c *Controllers, client *client, _ *handlers) (runner, error) {
	core := c.informers.all.Core().V1()
	return serviceaccountcontroller.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(), client,
		serviceaccountcontroller.DefaultServiceAccountsControllerOptions())
}

func newTokens(ctx context.Context, c *Controllers, client *client, _ *handlers) (runner, error) {
	key, err := keyutil.PrivateKeyFromFile(c.cfg.ServiceAccountKeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the key for service account tokens: %w", err)
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, err
	}
	return serviceaccountcontroller.NewTokensController(klog.FromContext(ctx), c.informers.all.Core().V1().ServiceAccounts(),
		c.informers.tokens.Core().V1().Secrets(), client,
		serviceaccountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: c.cfg.RootCA})
}

func newRootCAPublisher(_ context.Context, c *Controllers, client *client, _ *handlers) (runner, error) {
	return rootcacertpublisher.NewPublisher(c.informers.rootCAs.Core().V1().ConfigMaps(),
		c.informers.all.Core().V1().Namespaces(), client, c.cfg.RootCA)
}

func newAggregation(_ context.Context, c *Controllers, client *client, _ *handlers) (runner, error) {
	return clusterroleaggregation.NewClusterRoleAggregation(c.informers.all.Rbac().V1().ClusterRoles(), client.RbacV1()), nil
}

func newSigners(ctx context.Context, c *Controllers, client *client, _ *handlers) (runner, error) {
	requests := c.informers.all.Certificates().V1().CertificateSigningRequests()
	var runs []func(context.Context)
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
		quirks.ReplaceReloader(s, func(authority dynamiccertificates.ControllerRunner) dynamiccertificates.ControllerRunner {
			return certwatch.Reloader(authority, c.cfg.SigningCertFile, c.cfg.SigningKeyFile)
		})
		runs = append(runs, func(ctx context.Context) { s.Run(ctx, 2) })
	}
	return together(runs...), nil
}

func newCSRCleaner(_ context.Context, c *Controllers, client *client, _ *handlers) (runner, error) {
	return cleaner.NewCSRCleanerController(client.CertificatesV1().CertificateSigningRequests(),
		c.informers.all.Certificates().V1().CertificateSigningRequests()), nil
}

func newBootstrapSigner(_ context.Context, c *Controllers, client *client, _ *handlers) (runner, error) {
	return runnerOf(bootstrap.NewSigner(client, c.informers.bootstrapTokens.Core().V1().Secrets(),
		c.informers.public.Core().V1().ConfigMaps(), bootstrap.DefaultSignerOptions()))
}

func newTokenCleaner(_ context.Context, c *Controllers, client *client, _ *handlers) (runner, error) {
	return runnerOf(bootstrap.NewTokenCleaner(client, c.informers.bootstrapTokens.Core().V1().Secrets(),
		bootstrap.DefaultTokenCleanerOptions()))
}

func newQuota(ctx context.Context, c *Controllers, client *client, _ *handlers) (runner, error) {
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
	return together(
		func(ctx context.Context) { q.Run(ctx, 2) },
		func(ctx context.Context) { q.Sync(ctx, discover, quotaSync) },
	), nil
}
