package provider

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardenlite/gardenlite/internal/component/operation"
)

// reconcileNetwork reports the IP families. Pods have no network of their own here.
func reconcileNetwork(_ context.Context, _ client.Client, network *extensionsv1alpha1.Network) error {
	network.Status.IPFamilies = network.Spec.IPFamilies
	if len(network.Status.IPFamilies) == 0 {
		network.Status.IPFamilies = []extensionsv1alpha1.IPFamily{extensionsv1alpha1.IPFamily(corev1beta1.IPFamilyIPv4)}
	}
	return nil
}

// reconcileControlPlane deploys nothing: the machine controller does what a cloud's controllers do to Nodes.
func reconcileControlPlane(_ context.Context, _ client.Client, plane *extensionsv1alpha1.ControlPlane) error {
	plane.Status.ProviderStatus = providerStatus("ControlPlaneStatus")
	return nil
}

// reconcileDNSRecord checks the record and reports its zone. There is no DNS server: clients use IP addresses.
func reconcileDNSRecord(_ context.Context, _ client.Client, record *extensionsv1alpha1.DNSRecord) error {
	for _, value := range record.Spec.Values {
		if err := checkRecord(record.Spec.RecordType, value); err != nil {
			return operation.ConfigurationProblem(fmt.Errorf("DNSRecord %s/%s for %s: %w", record.Namespace, record.Name, record.Spec.Name, err))
		}
	}
	if record.Status.Zone = record.Spec.Zone; record.Status.Zone == nil {
		record.Status.Zone = ptr.To("local")
	}
	return nil
}

func checkRecord(kind extensionsv1alpha1.DNSRecordType, value string) error {
	switch kind {
	case extensionsv1alpha1.DNSRecordTypeA, extensionsv1alpha1.DNSRecordTypeAAAA:
		address, err := netip.ParseAddr(value)
		if err != nil || address.Is4() != (kind == extensionsv1alpha1.DNSRecordTypeA) {
			return fmt.Errorf("%q is no address for a record of type %s", value, kind)
		}
	case extensionsv1alpha1.DNSRecordTypeCNAME:
		if problems := validation.IsDNS1123Subdomain(strings.TrimSuffix(value, ".")); len(problems) > 0 {
			return fmt.Errorf("%q is no name for a record of type CNAME: %v", value, problems)
		}
	}
	return nil
}
