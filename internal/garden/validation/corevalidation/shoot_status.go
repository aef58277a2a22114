package corevalidation

import (
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
)

// ValidateShootStatusUpdate checks the status of the Shoot with this name that the gardenlet reports. The UID, the technical
// ID and the cluster identity must not change once they are set. The technical ID is the name of a namespace: files on the
// machines of those who use the Shoot are named after it. Which one a gardenlet may set is up to SeedRestriction.
func ValidateShootStatusUpdate(newStatus, oldStatus gardencore.ShootStatus) field.ErrorList {
	var (
		errs field.ErrorList
		path = field.NewPath("status")
	)
	if oldStatus.UID != "" {
		errs = append(errs, immutable(newStatus.UID, oldStatus.UID, path.Child("uid"))...)
	}
	if oldStatus.TechnicalID != "" {
		errs = append(errs, immutable(newStatus.TechnicalID, oldStatus.TechnicalID, path.Child("technicalID"))...)
	} else if id := newStatus.TechnicalID; id != "" {
		errs = append(errs, InvalidIf(len(validation.IsDNS1123Label(id)) > 0, path.Child("technicalID"), id, "must be the name of a namespace")...)
	}
	errs = append(errs, immutableOnceSet(newStatus.ClusterIdentity, oldStatus.ClusterIdentity, path.Child("clusterIdentity"))...)
	errs = append(errs, validateAdvertisedAddresses(newStatus.AdvertisedAddresses, path.Child("advertisedAddresses"))...)
	if networking := newStatus.Networking; networking != nil {
		networkingPath := path.Child("networking")
		errs = append(errs, validateStatusCIDRs(networking.Nodes, networkingPath.Child("nodes"))...)
		errs = append(errs, validateStatusCIDRs(networking.Pods, networkingPath.Child("pods"))...)
		errs = append(errs, validateStatusCIDRs(networking.Services, networkingPath.Child("services"))...)
		errs = append(errs, validateStatusCIDRs(networking.EgressCIDRs, networkingPath.Child("egressCIDRs"))...)
	}
	return errs
}

func validateStatusCIDRs(cidrs []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, text := range cidrs {
		cidr := NewCIDR(text, path.Index(i))
		errs = append(errs, cidr.ValidateParse()...)
		errs = append(errs, cidr.ValidateCanonical()...)
	}
	return errs
}

func validateAdvertisedAddresses(addresses []gardencore.ShootAdvertisedAddress, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, address := range addresses {
		namePath := path.Index(i).Child("name")
		switch {
		case address.Name == "":
			errs = append(errs, Required(namePath, address.Name)...)
		case !insertNew(names, address.Name):
			errs = append(errs, field.Duplicate(namePath, address.Name))
		default:
			errs = append(errs, validateAdvertisedURL(address.URL, path.Index(i).Child("url"))...)
		}
	}
	return errs
}

// validateAdvertisedURL checks that the URL is https://host[:port], with an optional path.
func validateAdvertisedURL(text string, path *field.Path) field.ErrorList {
	const form = "must be a URL like https://host:port"
	parsed, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Required(path, fmt.Sprintf("%s: %v", form, err))}
	}
	var errs field.ErrorList
	for _, part := range []struct {
		broken bool
		value  string
		detail string
	}{
		{parsed.Scheme != "https", parsed.Scheme, "the scheme must be https"},
		{parsed.Host == "", parsed.Host, "there must be a host"},
		{parsed.User != nil, "", "there must be no user"},
		{parsed.Fragment != "", parsed.Fragment, "there must be no fragment"},
		{parsed.RawQuery != "", parsed.RawQuery, "there must be no query"},
	} {
		errs = append(errs, InvalidIf(part.broken, path, part.value, form+": "+part.detail)...)
	}
	return errs
}
