package shoot

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	corev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/seed/gardenlet/flow"
)

// deployNamespace ensures the namespace of the Shoot's control plane, with the labels and annotations that other
// components in the seed use.
func (r *Reconciler) deployNamespace(ctx context.Context, a *gardenData) error {
	extensions, err := r.extensionTypes(ctx, a.shoot)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.shoot.Status.TechnicalID}}
	return ensure(ctx, r.SeedClient, r.SeedReader, namespace, func(namespace *corev1.Namespace) error {
		// One that exists is the Shoot's only with its UID: whatever is in it would get the Shoot's control plane.
		if uid := namespace.Annotations[constants.ShootUID]; namespace.ResourceVersion != "" && uid != string(a.shoot.Status.UID) {
			return fmt.Errorf("namespace %s in the seed is not this Shoot's: it has the UID %q in its annotation %s: delete it if it is "+
				"of no use", namespace.Name, uid, constants.ShootUID)
		}
		maps.DeleteFunc(namespace.Labels, func(label, _ string) bool { return strings.HasPrefix(label, constants.LabelExtensionPrefix) })
		for label, value := range namespaceLabels(a) {
			metav1.SetMetaDataLabel(&namespace.ObjectMeta, label, value)
		}
		for _, extension := range extensions {
			metav1.SetMetaDataLabel(&namespace.ObjectMeta, constants.LabelExtensionPrefix+extension, "true")
		}
		metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, constants.ShootUID, string(a.shoot.Status.UID))
		return setZones(namespace, a)
	})
}

func namespaceLabels(a *gardenData) map[string]string {
	labels := map[string]string{
		constants.GardenRole:                             constants.GardenRoleShoot,
		constants.LabelSeedProvider:                      a.seed.Spec.Provider.Type,
		constants.LabelShootProvider:                     a.shoot.Spec.Provider.Type,
		constants.LabelBackupProvider:                    a.seed.Spec.Provider.Type,
		podsecurity.EnforceLevelLabel:                    string(podsecurity.LevelPrivileged),
		resourcesv1alpha1.HighAvailabilityConfigConsider: "true",
	}
	if backup := a.seed.Spec.Backup; backup != nil {
		labels[constants.LabelBackupProvider] = backup.Provider
	}
	if networking := a.shoot.Spec.Networking; networking != nil && networking.Type != nil {
		labels[constants.LabelNetworkingProvider] = *networking.Type
	}
	return labels
}

// extensionTypes returns the types of the Shoot's extensions: those that are enabled for all Shoots, and those in its
// spec, without those that its spec disables.
func (r *Reconciler) extensionTypes(ctx context.Context, shoot *corev1beta1.Shoot) ([]string, error) {
	registrations := &corev1beta1.ControllerRegistrationList{}
	if err := r.GardenClient.List(ctx, registrations); err != nil {
		return nil, fmt.Errorf("listing ControllerRegistrations: %w", err)
	}
	types := map[string]bool{}
	for _, registration := range registrations.Items {
		for _, resource := range registration.Spec.Resources {
			if resource.Kind == extensionsv1alpha1.ExtensionResource && slices.Contains(resource.AutoEnable, corev1beta1.ClusterTypeShoot) {
				types[resource.Type] = true
			}
		}
	}
	for _, extension := range shoot.Spec.Extensions {
		types[extension.Type] = !ptr.Deref(extension.Disabled, false)
	}
	maps.DeleteFunc(types, func(_ string, has bool) bool { return !has })
	return slices.Sorted(maps.Keys(types)), nil
}

// setZones sets the zones of the control plane: three if it has to tolerate the failure of a zone, and one otherwise, of
// those to which it is pinned, or else of the seed's. They are chosen once, and again if the failure tolerance changes, which
// keeps the existing ones.
func setZones(namespace *corev1.Namespace, a *gardenData) error {
	var tolerates corev1beta1.FailureToleranceType
	if plane := a.shoot.Spec.ControlPlane; plane != nil && plane.HighAvailability != nil {
		tolerates = plane.HighAvailability.FailureTolerance.Type
	}
	before, chosen := namespace.Annotations[resourcesv1alpha1.HighAvailabilityConfigFailureToleranceType]
	metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, resourcesv1alpha1.HighAvailabilityConfigFailureToleranceType, string(tolerates))
	if all := a.seed.Spec.Provider.Zones; len(all) == 0 || chosen && before == string(tolerates) {
		return nil
	}
	var has []string
	if zones := namespace.Annotations[resourcesv1alpha1.HighAvailabilityConfigZones]; zones != "" {
		has = strings.Split(zones, ",")
	}
	zones, err := chooseZones(a, tolerates, has)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, resourcesv1alpha1.HighAvailabilityConfigZones, strings.Join(zones, ","))
	return nil
}

// chooseZones adds zones to those that a control plane has. The choice depends on the Shoot's UID, so that the control
// planes of many Shoots are spread over all zones, and is the same for the same Shoot.
func chooseZones(a *gardenData, tolerates corev1beta1.FailureToleranceType, zones []string) ([]string, error) {
	offered := a.seed.Spec.Provider.Zones
	pinned := ptr.Deref(a.shoot.Spec.ControlPlane, corev1beta1.ControlPlane{}).Zones
	if len(pinned) > 0 {
		offered = pinned
	}
	pool, wanted := slices.Clone(offered), 1
	if tolerates == corev1beta1.FailureToleranceTypeZone {
		wanted = 3
	} else if settings := a.seed.Spec.Settings; settings != nil && settings.ZoneSelection != nil && len(pinned) == 0 {
		ofWorkers := slices.DeleteFunc(slices.Clone(pool), func(zone string) bool {
			return !slices.ContainsFunc(a.shoot.Spec.Provider.Workers, func(w corev1beta1.Worker) bool { return slices.Contains(w.Zones, zone) })
		})
		switch {
		case len(ofWorkers) > 0:
			pool = ofWorkers
		case settings.ZoneSelection.Mode == corev1beta1.ZoneSelectionModeEnforce:
			return nil, flow.WithCodes(fmt.Errorf("the seed puts control planes where their workers are, and has no zone of "+
				"the Shoot's workers, only %v", pool), corev1beta1.ErrorConfigurationProblem)
		}
	}
	pool = slices.DeleteFunc(pool, func(zone string) bool { return slices.Contains(zones, zone) })
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(a.shoot.Status.UID)) // it cannot fail
	for len(zones) < wanted {
		if len(pool) == 0 {
			return nil, flow.WithCodes(fmt.Errorf("the control plane needs %d zones, and can have %v", wanted, offered),
				corev1beta1.ErrorConfigurationProblem)
		}
		i := int(hash.Sum32() % uint32(len(pool))) // there are few zones
		zones, pool = append(zones, pool[i]), slices.Delete(pool, i, i+1)
	}
	slices.Sort(zones)
	return zones, nil
}
