package kubecontrollers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
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
	// discoverySync is how often the controllers that deal with every resource look whether there are new ones.
	discoverySync = 10 * time.Second
	// certificateLife is how long certificates are valid that controllers sign, if the request does not say.
	certificateLife = 365 * 24 * time.Hour
	quotaSync       = 5 * time.Minute
	namespaceSync   = 5 * time.Minute
	// tokenIssuer is the issuer of tokens that are kept in Secrets, which every cluster has the same.
	tokenIssuer = "kubernetes/serviceaccount"
)

// table is what can run, by the names that kube-controller-manager has for it.
var table = []struct {
	name string
	new  func(context.Context, *Controllers) ([]func(context.Context), error)
}{
	{"namespace-controller", newNamespaces},
	{"garbage-collector-controller", newGarbageCollector},
	{"serviceaccount-controller", newServiceAccounts},
	{"serviceaccount-token-controller", newTokens},
	{"root-ca-certificate-publisher-controller", newRootCAPublisher},
	{"clusterrole-aggregation-controller", newAggregation},
	{"certificatesigningrequest-signing-controller", newSigners},
	{"certificatesigningrequest-cleaner-controller", newCSRCleaner},
	{"bootstrap-signer-controller", newBootstrapSigner},
	{"token-cleaner-controller", newTokenCleaner},
	{"resourcequota-controller", newQuota},
}

func newNamespaces(ctx context.Context, c *Controllers) ([]func(context.Context), error) {
	config, err := c.configOf("namespace-controller")
	if err != nil {
		return nil, err
	}
	client, err := c.clientOf("namespace-controller")
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	n := namespace.NewNamespaceController(ctx, client, metadataClient, client.Discovery().ServerPreferredNamespacedResources,
		c.informers.Core().V1().Namespaces(), namespaceSync, corev1.FinalizerKubernetes)
	return []func(context.Context){func(ctx context.Context) { n.Run(ctx, 5) }}, nil
}

func newGarbageCollector(ctx context.Context, c *Controllers) ([]func(context.Context), error) {
	config, err := c.configOf("generic-garbage-collector")
	if err != nil {
		return nil, err
	}
	client, err := c.clientOf("generic-garbage-collector")
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	// Events come in numbers and own nothing.
	ignored := map[schema.GroupResource]struct{}{{Resource: "events"}: {}, {Group: "events.k8s.io", Resource: "events"}: {}}
	gc, err := garbagecollector.NewGarbageCollector(ctx, client, metadataClient, c.mapper, ignored, c.both(), c.started)
	if err != nil {
		return nil, err
	}
	return []func(context.Context){
		func(ctx context.Context) { gc.Run(ctx, 5, time.Minute) },
		func(ctx context.Context) { gc.Sync(ctx, client.Discovery(), discoverySync) },
	}, nil
}

func newServiceAccounts(ctx context.Context, c *Controllers) ([]func(context.Context), error) {
	client, err := c.clientOf("service-account-controller")
	if err != nil {
		return nil, err
	}
	s, err := serviceaccountcontroller.NewServiceAccountsController(klog.FromContext(ctx), c.informers.Core().V1().ServiceAccounts(),
		c.informers.Core().V1().Namespaces(), client, serviceaccountcontroller.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return nil, err
	}
	return []func(context.Context){func(ctx context.Context) { s.Run(ctx, 1) }}, nil
}

// newTokens runs as the shared user, as in a kube-controller-manager: it is what others would get their tokens from.
func newTokens(ctx context.Context, c *Controllers) ([]func(context.Context), error) {
	key, err := keyutil.PrivateKeyFromFile(c.cfg.ServiceAccountKeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the key for service account tokens: %w", err)
	}
	generator, err := serviceaccount.JWTTokenGenerator(tokenIssuer, key)
	if err != nil {
		return nil, err
	}
	t, err := serviceaccountcontroller.NewTokensController(klog.FromContext(ctx), c.informers.Core().V1().ServiceAccounts(), c.tokens.Core().V1().Secrets(),
		c.client, serviceaccountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: c.cfg.RootCA})
	if err != nil {
		return nil, err
	}
	return []func(context.Context){func(ctx context.Context) { t.Run(ctx, 2) }}, nil
}

func newRootCAPublisher(_ context.Context, c *Controllers) ([]func(context.Context), error) {
	client, err := c.clientOf("root-ca-cert-publisher")
	if err != nil {
		return nil, err
	}
	p, err := rootcacertpublisher.NewPublisher(c.informers.Core().V1().ConfigMaps(), c.informers.Core().V1().Namespaces(), client, c.cfg.RootCA)
	if err != nil {
		return nil, err
	}
	return []func(context.Context){func(ctx context.Context) { p.Run(ctx, 1) }}, nil
}

func newAggregation(_ context.Context, c *Controllers) ([]func(context.Context), error) {
	client, err := c.clientOf("clusterrole-aggregation-controller")
	if err != nil {
		return nil, err
	}
	a := clusterroleaggregation.NewClusterRoleAggregation(c.informers.Rbac().V1().ClusterRoles(), client.RbacV1())
	return []func(context.Context){func(ctx context.Context) { a.Run(ctx, 5) }}, nil
}

func newSigners(ctx context.Context, c *Controllers) (runs []func(context.Context), err error) {
	client, err := c.clientOf("certificate-controller")
	if err != nil {
		return nil, err
	}
	requests := c.informers.Certificates().V1().CertificateSigningRequests()
	cert, key := c.cfg.SigningCertFile, c.cfg.SigningKeyFile
	for _, newSigner := range []func() (*signer.CSRSigningController, error){
		func() (*signer.CSRSigningController, error) {
			return signer.NewKubeAPIServerClientCSRSigningController(ctx, client, requests, cert, key, certificateLife)
		},
		func() (*signer.CSRSigningController, error) {
			return signer.NewKubeletClientCSRSigningController(ctx, client, requests, cert, key, certificateLife)
		},
		func() (*signer.CSRSigningController, error) {
			return signer.NewKubeletServingCSRSigningController(ctx, client, requests, cert, key, certificateLife)
		},
		func() (*signer.CSRSigningController, error) {
			return signer.NewLegacyUnknownCSRSigningController(ctx, client, requests, cert, key, certificateLife)
		},
	} {
		s, err := newSigner()
		if err != nil {
			return nil, err
		}
		runs = append(runs, func(ctx context.Context) { s.Run(ctx, 2) })
	}
	return runs, nil
}

func newCSRCleaner(_ context.Context, c *Controllers) ([]func(context.Context), error) {
	client, err := c.clientOf("certificate-controller")
	if err != nil {
		return nil, err
	}
	cc := cleaner.NewCSRCleanerController(client.CertificatesV1().CertificateSigningRequests(), c.informers.Certificates().V1().CertificateSigningRequests())
	return []func(context.Context){func(ctx context.Context) { cc.Run(ctx, 1) }}, nil
}

func newBootstrapSigner(_ context.Context, c *Controllers) ([]func(context.Context), error) {
	client, err := c.clientOf("bootstrap-signer")
	if err != nil {
		return nil, err
	}
	s, err := bootstrap.NewSigner(client, c.bootstrap.Core().V1().Secrets(), c.informers.Core().V1().ConfigMaps(), bootstrap.DefaultSignerOptions())
	if err != nil {
		return nil, err
	}
	return []func(context.Context){s.Run}, nil
}

func newTokenCleaner(_ context.Context, c *Controllers) ([]func(context.Context), error) {
	client, err := c.clientOf("token-cleaner")
	if err != nil {
		return nil, err
	}
	t, err := bootstrap.NewTokenCleaner(client, c.bootstrap.Core().V1().Secrets(), bootstrap.DefaultTokenCleanerOptions())
	if err != nil {
		return nil, err
	}
	return []func(context.Context){t.Run}, nil
}

func newQuota(ctx context.Context, c *Controllers) ([]func(context.Context), error) {
	client, err := c.clientOf("resourcequota-controller")
	if err != nil {
		return nil, err
	}
	// Pods and volume claims do not exist here, so nothing is counted by reading objects.
	configuration, err := quotainstall.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(c.both().ForResource), c.informers)
	if err != nil {
		return nil, err
	}
	discover := client.Discovery().ServerPreferredNamespacedResources
	q, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     c.informers.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(quotaSync),
		InformerFactory:           c.both(),
		ReplenishmentResyncPeriod: func() time.Duration { return resync },
		DiscoveryFunc:             discover,
		IgnoredResourcesFunc:      configuration.IgnoredResources,
		InformersStarted:          c.started,
		Registry:                  generic.NewRegistry(configuration.Evaluators()),
		UpdateFilter:              quotainstall.DefaultUpdateFilter(),
	})
	if err != nil {
		return nil, err
	}
	return []func(context.Context){
		func(ctx context.Context) { q.Run(ctx, 2) },
		func(ctx context.Context) { q.Sync(ctx, discover, discoverySync) },
	}, nil
}
