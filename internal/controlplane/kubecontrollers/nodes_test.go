package kubecontrollers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"strings"
	"testing"

	capi "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// TestServingApprover checks that a node gets a serving certificate for itself only.
func TestServingApprover(t *testing.T) {
	const user = "system:node:one"
	node := []string{"system:nodes", "system:authenticated"}
	ip := []net.IP{net.ParseIP("10.250.0.4")}
	for name, test := range map[string]struct {
		user   string
		groups []string
		cn     string
		names  []string
		ips    []net.IP
		signer string
		want   string // the error; empty if the request is approved
	}{
		"its own":          {user, node, user, []string{"one"}, ip, capi.KubeletServingSignerName, ""},
		"another node's":   {"system:node:two", node, user, nil, ip, capi.KubeletServingSignerName, "not from the node"},
		"a user's":         {"alice", node, "alice", nil, ip, capi.KubeletServingSignerName, "system:node"},
		"not of the group": {user, []string{"system:authenticated"}, user, nil, ip, capi.KubeletServingSignerName, "not from the node"},
		"another address": {user, node, user, nil, []net.IP{net.ParseIP("10.250.0.5")}, capi.KubeletServingSignerName,
			"10.250.0.5 is no address of the node"},
		"another name": {user, node, user, []string{"kubernetes"}, ip, capi.KubeletServingSignerName,
			"kubernetes is no name of the node"},
		"a node that is not there": {"system:node:two", node, "system:node:two", nil, ip, capi.KubeletServingSignerName, "there is no node two"},
		"of another signer":        {user, node, user, nil, ip, capi.KubeAPIServerClientSignerName, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			csr := signingRequest(t, test.cn, test.names, test.ips)
			csr.Spec.Username, csr.Spec.Groups, csr.Spec.SignerName = test.user, test.groups, test.signer
			client := fake.NewClientset(csr)
			err := (&servingApprover{client: client, nodes: nodeOne(t)}).handle(t.Context(), csr)
			if test.want != "" && test.want != "-" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("the error is %v", err)
			}
			got, err := client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), csr.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if approved := len(got.Status.Conditions) > 0; approved != (test.want == "") {
				t.Errorf("approved: %t", approved)
			}
		})
	}
}

func nodeOne(t *testing.T) corelisters.NodeLister {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	err := indexer.Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "10.250.0.4"}, {Type: corev1.NodeHostName, Address: "one"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return corelisters.NewNodeLister(indexer)
}

func signingRequest(t *testing.T, cn string, names []string, ips []net.IP) *capi.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: cn, Organization: []string{"system:nodes"}}, DNSNames: names, IPAddresses: ips,
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &capi.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "request"}, Spec: capi.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		Usages:  []capi.KeyUsage{capi.UsageDigitalSignature, capi.UsageServerAuth},
	}}
}
