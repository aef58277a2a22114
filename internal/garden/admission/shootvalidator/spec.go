package shootvalidator

import (
	"context"
	"fmt"
	"slices"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/gardenlite/gardenlite/internal/garden/admission/cloudprofile"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/shootcommon"
	validation "github.com/gardenlite/gardenlite/internal/garden/validation/corevalidation"
)

// validateRawExtensions refuses provider configuration in an internal API version, which clients cannot decode.
func (r *request) validateRawExtensions() field.ErrorList {
	var errs field.ErrorList
	check := func(ext *runtime.RawExtension, path *field.Path) {
		if ext == nil {
			return
		}
		// The extension validates configuration that is not a Kubernetes object.
		if _, gvk, _ := unstructured.UnstructuredJSONScheme.Decode(ext.Raw, nil, nil); gvk != nil && gvk.Version == runtime.APIVersionInternal {
			errs = append(errs, field.Invalid(path, gvk.String(), "must have a version that is not internal"))
		}
	}
	provider, path := &r.shoot.Spec.Provider, specPath.Child("provider")
	check(provider.InfrastructureConfig, path.Child("infrastructureConfig"))
	check(provider.ControlPlaneConfig, path.Child("controlPlaneConfig"))
	if r.shoot.Spec.Networking != nil {
		check(r.shoot.Spec.Networking.ProviderConfig, specPath.Child("networking", "providerConfig"))
	}
	for i, worker := range provider.Workers {
		path := path.Child("workers").Index(i)
		check(worker.ProviderConfig, path.Child("providerConfig"))
		if worker.Machine.Image != nil {
			check(worker.Machine.Image.ProviderConfig, path.Child("machine", "image", "providerConfig"))
		}
		if worker.CRI != nil {
			for j, cr := range worker.CRI.ContainerRuntimes {
				check(cr.ProviderConfig, path.Child("cri", "containerRuntimes").Index(j).Child("providerConfig"))
			}
		}
	}
	return errs
}

// validateNetworks checks that the networks of the Shoot are set and disjoint from each other and, when a seed is
// assigned, from the networks of the seed.
func (r *request) validateNetworks() field.ErrorList {
	networking, path := r.shoot.Spec.Networking, specPath.Child("networking")
	if networking == nil {
		return field.ErrorList{field.Required(path, "the networks of the Shoot must be described")}
	}
	workerless, ipv4 := shootcommon.Workerless(r.shoot), shootcommon.HasIPFamily(r.shoot, gardencore.IPFamilyIPv4)
	var errs field.ErrorList
	if ipv4 {
		errs = validation.ValidateShootNetworkDisjointedness(path, networking.Nodes, networking.Pods, networking.Services)
	}
	if r.seed == nil {
		return errs
	}
	errs = append(errs, validation.RequiredIf(networking.Pods == nil && ipv4 && !workerless, path.Child("pods"),
		"the Shoot has a seed, which offers no default")...)
	if networking.Services == nil && (ipv4 || workerless && shootcommon.HasIPFamily(r.shoot, gardencore.IPFamilyIPv6)) {
		errs = append(errs, field.Required(path.Child("services"), "the Shoot has a seed, which offers no default"))
	}
	if !ipv4 || equality.Semantic.DeepEqual(r.old.Spec.SeedName, r.shoot.Spec.SeedName) {
		return errs
	}
	seed := r.seed.Spec.Networks
	errs = append(errs, validation.ValidateNetworkDisjointedness(path, networking.Nodes, networking.Pods,
		networking.Services, seed.Nodes, seed.Pods, seed.Services)...)
	if status := r.shoot.Status.Networking; status != nil && len(status.Nodes)+len(status.Pods)+len(status.Services) > 0 {
		errs = append(errs, validation.ValidateMultiNetworkDisjointedness(field.NewPath("status", "networking"),
			status.Nodes, status.Pods, status.Services, seed.Nodes, seed.Pods, seed.Services, workerless)...)
	}
	return errs
}

func (r *request) validateKubernetesVersion() field.ErrorList {
	return r.validateVersionOffered(r.shoot.Spec.Kubernetes.Version, r.old.Spec.Kubernetes.Version, false,
		specPath.Child("kubernetes", "version"))
}

// validateVersionOffered checks that the CloudProfile offers a changed Kubernetes version. A new Shoot or pool must not
// use an expired version; an existing one may have to be updated to one on the way to a later version.
func (r *request) validateVersionOffered(version, old string, isNew bool, path *field.Path) field.ErrorList {
	if version == old {
		return nil
	}
	var offered []string
	for _, candidate := range r.profile.Kubernetes.Versions {
		if (isNew || r.GetOperation() == admission.Create) && !validation.Active(candidate, r.now) {
			continue
		}
		if candidate.Version == version {
			return nil
		}
		offered = append(offered, candidate.Version)
	}
	return field.ErrorList{field.NotSupported(path, version, offered)}
}

func (r *request) validateRegion() field.ErrorList {
	name := r.shoot.Spec.Region
	if name == r.old.Spec.Region || cloudprofile.Region(r.profile.Regions, name) != nil {
		return nil
	}
	return field.ErrorList{field.NotSupported(
		specPath.Child("region"), name, names(r.profile.Regions, func(r gardencore.Region) string { return r.Name }))}
}

// validateAccessRestrictions checks that the region and the seed support the access restrictions of the Shoot, if these
// have changed.
func (r *request) validateAccessRestrictions() field.ErrorList {
	nameOf := func(a gardencore.AccessRestrictionWithOptions) string { return a.Name }
	wanted, had := names(r.shoot.Spec.AccessRestrictions, nameOf), names(r.old.Spec.AccessRestrictions, nameOf)
	if sets.New(wanted...).Equal(sets.New(had...)) {
		return nil
	}
	region := cloudprofile.Region(r.profile.Regions, r.shoot.Spec.Region)
	if region == nil {
		return field.ErrorList{
			field.Invalid(specPath.Child("region"), r.shoot.Spec.Region, "the cloud profile has no such region, so no access restrictions for it")}
	}
	var errs field.ErrorList
	for i, name := range wanted {
		path := specPath.Child("accessRestrictions").Index(i)
		if !hasRestriction(region.AccessRestrictions, name) {
			errs = append(errs, field.NotSupported(
				path, name, names(region.AccessRestrictions, func(a gardencore.AccessRestriction) string { return a.Name })))
		}
		if r.seed != nil && !hasRestriction(r.seed.Spec.AccessRestrictions, name) {
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("seed %q does not support %s", r.seed.Name, name)))
		}
	}
	return errs
}

// validateControlPlaneZones checks that the CloudProfile allows to pin the control plane to zones if it was not pinned before,
// and that the seed has changed zones. Like Gardener, it does not look at the seed when a Shoot is bound.
func (r *request) validateControlPlaneZones() field.ErrorList {
	path := specPath.Child("controlPlane", "zones")
	zones, before := validation.ControlPlaneZones(&r.shoot.Spec), validation.ControlPlaneZones(&r.old.Spec)
	allowed := r.profile.ControlPlane != nil && r.profile.ControlPlane.AllowZonePinning
	if len(zones) > 0 && len(before) == 0 && !allowed {
		return field.ErrorList{field.Forbidden(path, "must not be set unless spec.controlPlane.allowZonePinning of the CloudProfile is true")}
	}
	if r.seed == nil || slices.Equal(zones, before) && r.shoot.Spec.Region == r.old.Spec.Region {
		return nil
	}
	var errs field.ErrorList
	for i, zone := range zones {
		errs = append(errs, validation.InvalidIf(!slices.Contains(r.seed.Spec.Provider.Zones, zone), path.Index(i), zone,
			fmt.Sprintf("seed %q has no such zone", r.seed.Name))...)
	}
	return errs
}

// validateLimits checks that the minimums of the worker pools are within the limits of the CloudProfile.
func (r *request) validateLimits() field.ErrorList {
	limits := r.profile.Limits
	if limits == nil || limits.MaxNodesTotal == nil || r.shoot.DeletionTimestamp != nil {
		return nil
	}
	minimum := shootcommon.MinimumNodes(r.shoot)
	if minimum <= int64(*limits.MaxNodesTotal) {
		return nil
	}
	return field.ErrorList{field.Forbidden(specPath.Child("provider", "workers"),
		fmt.Sprintf("the worker pools have at least %d nodes together; the cloud profile allows %d", minimum, *limits.MaxNodesTotal))}
}

// validateDomain refuses a domain that equals, contains, or is contained in, the domain of another Shoot.
func (r *request) validateDomain(ctx context.Context) (field.ErrorList, error) {
	if r.shoot.Spec.DNS == nil || r.shoot.Spec.DNS.Domain == nil {
		return nil, nil
	}
	domain, path := *r.shoot.Spec.DNS.Domain, specPath.Child("dns", "domain")
	equal := field.Duplicate(path, domain)
	nested := field.Forbidden(path, "must not contain, or be within, the domain of another Shoot")
	type lookup struct {
		index, domain string
		err           *field.Error
	}
	lookups := []lookup{{plugin.IndexDomain, domain, equal}, {plugin.IndexParentDomain, domain, nested}}
	for _, parent := range plugin.ParentDomains(domain) {
		lookups = append(lookups, lookup{plugin.IndexDomain, parent, nested})
	}
	for _, l := range lookups {
		if taken, err := r.isOfAnotherShoot(ctx, l.index, l.domain); err != nil {
			return nil, err
		} else if taken {
			return field.ErrorList{l.err}, nil
		}
	}
	return nil, nil
}

// isOfAnotherShoot reports whether another Shoot has the domain in an index.
func (r *request) isOfAnotherShoot(ctx context.Context, index, domain string) (bool, error) {
	shoots, err := r.deps.Reader.ByIndex(ctx, gardencore.Resource("shoots"), index, domain)
	if err != nil {
		return false, fmt.Errorf("looking for shoots with domain %s: %v", domain, err)
	}
	return slices.ContainsFunc(shoots, func(obj runtime.Object) bool {
		other, ok := obj.(*gardencore.Shoot)
		return ok && (other.Name != r.shoot.Name || other.Namespace != r.shoot.Namespace)
	}), nil
}

func names[T any](items []T, name func(T) string) []string {
	var all []string
	for _, item := range items {
		all = append(all, name(item))
	}
	return all
}
