package kubecontrollers

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	capi "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	capihelper "k8s.io/kubernetes/pkg/apis/certificates"
	"k8s.io/kubernetes/pkg/controller/certificates"
	"k8s.io/kubernetes/pkg/controller/certificates/approver"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
)

const (
	// servingApproverController approves the serving certificates of kubelets. In Gardener, the
	// gardener-resource-manager does so.
	servingApproverController = "kubelet-serving-approver-controller"
	servingApproverAccount    = "kubelet-csr-approver"
)

// The values of kube-controller-manager, except nodeMonitorGracePeriod, which is Gardener's.
const (
	nodeMonitorPeriod      = 5 * time.Second
	nodeStartupGracePeriod = time.Minute
	nodeMonitorGracePeriod = 40 * time.Second
	evictionRate           = 0.1
	secondaryEvictionRate  = 0.01
	largeCluster           = 50
	unhealthyZoneThreshold = 0.55
	certificateWorkers     = 2
	approvalReason         = "AutoApproved"
	approvalMessage        = "The certificate is for the node that asks for it, and for its addresses."
	nodeUserPrefix         = "system:node:"
	nodesGroup             = "system:nodes"
)

func newNodeLifecycle(ctx context.Context, c *Controllers, client *client, h *handlers) (runner, error) {
	all := c.informers.all
	return runnerOf(nodelifecycle.NewNodeLifecycleController(ctx, hold(h, all.Coordination().V1().Leases()),
		hold(h, all.Core().V1().Pods()), hold(h, all.Core().V1().Nodes()),
		hold(h, all.Apps().V1().DaemonSets()), client, nodeMonitorPeriod, nodeStartupGracePeriod, nodeMonitorGracePeriod,
		evictionRate, secondaryEvictionRate, largeCluster, unhealthyZoneThreshold))
}

func newCSRApprover(ctx context.Context, c *Controllers, client *client, _ *handlers) (runner, error) {
	return approver.NewCSRApprovingController(ctx, client, c.informers.all.Certificates().V1().CertificateSigningRequests()), nil
}

func newServingApprover(ctx context.Context, c *Controllers, client *client, _ *handlers) (runner, error) {
	a := &servingApprover{client: client, nodes: c.informers.all.Core().V1().Nodes().Lister()}
	return certificates.NewCertificateController(
		ctx, "kubeletserving", client, c.informers.all.Certificates().V1().CertificateSigningRequests(), a.handle), nil
}

// servingApprover approves the serving certificate of a kubelet if the node itself requests it, and only for names and
// addresses of the node.
type servingApprover struct {
	client kubernetes.Interface
	nodes  corelisters.NodeLister
}

func (a *servingApprover) handle(ctx context.Context, csr *capi.CertificateSigningRequest) error {
	approved, denied := certificates.GetCertApprovalCondition(&csr.Status)
	if csr.Spec.SignerName != capi.KubeletServingSignerName || approved || denied {
		return nil
	}
	if err := a.check(csr); err != nil {
		// The request is retried: the node may not have reported its addresses yet.
		return certificates.IgnorableError("not approving CertificateSigningRequest %s: %s", csr.Name, err.Error())
	}
	csr = csr.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, capi.CertificateSigningRequestCondition{
		Type: capi.CertificateApproved, Status: corev1.ConditionTrue, Reason: approvalReason, Message: approvalMessage,
	})
	if _, err := a.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(
		ctx, csr.Name, csr, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("approving CertificateSigningRequest %s: %w", csr.Name, err)
	}
	return nil
}

// check returns the reason why a request is not approved.
func (a *servingApprover) check(csr *capi.CertificateSigningRequest) error {
	request, err := capihelper.ParseCSR(csr.Spec.Request)
	if err != nil {
		return err
	}
	usages := sets.NewString()
	for _, usage := range csr.Spec.Usages {
		usages.Insert(string(usage))
	}
	if err := capihelper.ValidateKubeletServingCSR(request, usages); err != nil {
		return err
	}
	name, isNode := strings.CutPrefix(csr.Spec.Username, nodeUserPrefix)
	if !isNode || !slices.Contains(csr.Spec.Groups, nodesGroup) || request.Subject.CommonName != csr.Spec.Username {
		return errors.New("it is not from the node that it is for")
	}
	node, err := a.nodes.Get(name)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no node %s", name)
	}
	if err != nil {
		return err
	}
	return ownNames(node, request)
}

// ownNames returns an error for a name or address in a request that is not one of the node.
func ownNames(node *corev1.Node, request *x509.CertificateRequest) error {
	var names, ips []string
	for _, address := range node.Status.Addresses {
		switch address.Type {
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			ips = append(ips, address.Address)
		default:
			names = append(names, address.Address)
		}
	}
	for _, name := range request.DNSNames {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%s is no name of the node", name)
		}
	}
	for _, ip := range request.IPAddresses {
		if !slices.Contains(ips, ip.String()) {
			return fmt.Errorf("%s is no address of the node", ip)
		}
	}
	return nil
}
