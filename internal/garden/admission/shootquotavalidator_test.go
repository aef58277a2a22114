package admission

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	gardencore "github.com/gardener/gardener/pkg/apis/core"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/apis/security"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	testclock "k8s.io/utils/clock/testing"

	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin"
	"github.com/gardenlite/gardenlite/internal/garden/admission/plugin/plugintest"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// shootWithQuota returns a Shoot with one pool of two machines with 2 CPUs, 4Gi of memory and a standard volume of 20Gi each.
func shootWithQuota(namespace, name string) *gardencore.Shoot {
	shoot := &gardencore.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	shoot.Spec.CloudProfile = &gardencore.CloudProfileReference{Kind: "CloudProfile", Name: "profile"}
	shoot.Spec.SecretBindingName = new("binding")
	shoot.Spec.Provider.Workers = []gardencore.Worker{
		{Name: "pool", Maximum: 2, Machine: gardencore.Machine{Type: "bare"}, Volume: &gardencore.Volume{Type: new("ssd"), VolumeSize: "20Gi"}}}
	return shoot
}

func newQuota(name, scope string, days *int32, metrics corev1.ResourceList) *gardencore.Quota {
	return &gardencore.Quota{ObjectMeta: metav1.ObjectMeta{Namespace: "quotas", Name: name},
		Spec: gardencore.QuotaSpec{Scope: corev1.ObjectReference{Kind: scope}, ClusterLifetimeDays: days, Metrics: metrics}}
}

// newQuotaPlugin returns a plugin that finds, in each of the namespaces a and b, a SecretBinding and a CredentialsBinding
// with all of the quotas.
func newQuotaPlugin(t *testing.T, shoots []*gardencore.Shoot, quotas ...*gardencore.Quota) admission.ValidationInterface {
	t.Helper()
	objects := map[schema.GroupResource][]runtime.Object{gardencore.Resource("cloudprofiles"): {&gardencore.CloudProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "profile"},
		Spec: gardencore.CloudProfileSpec{
			VolumeTypes: []gardencore.VolumeType{{Name: "ssd", Class: "standard"}, {Name: "nvme", Class: "premium"}, {Name: "tape", Class: "slow"}},
			MachineTypes: []gardencore.MachineType{
				{Name: "bare", CPU: resource.MustParse("2"), Memory: resource.MustParse("4Gi")},
				{Name: "full", CPU: resource.MustParse("2"), Memory: resource.MustParse("4Gi"),
					Storage: &gardencore.MachineTypeStorage{Class: "premium", StorageSize: new(resource.MustParse("50Gi"))}},
			},
		},
	}}}
	add := func(resource schema.GroupResource, obj runtime.Object) {
		objects[resource] = append(objects[resource], obj)
	}
	var refs []corev1.ObjectReference
	for _, quota := range quotas {
		refs = append(refs, corev1.ObjectReference{Namespace: quota.Namespace, Name: quota.Name})
		if quota.Name != "gone" {
			add(gardencore.Resource("quotas"), quota)
		}
	}
	for _, namespace := range []string{"a", "b"} {
		add(gardencore.Resource("secretbindings"),
			&gardencore.SecretBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "binding"}, Quotas: refs})
		add(security.Resource("credentialsbindings"),
			&security.CredentialsBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "credentials"}, Quotas: refs})
	}
	for _, shoot := range shoots {
		add(gardencore.Resource("shoots"), shoot)
	}
	p := shootQuotaPlugin.New(plugin.Dependencies{Reader: plugintest.Reader{Objects: objects}, Clock: testclock.NewFakePassiveClock(now)})
	return p.(admission.ValidationInterface)
}

// runValidateShootQuota creates the Shoot, or updates it if there is an old one.
func runValidateShootQuota(p admission.ValidationInterface, shoot, old *gardencore.Shoot) error {
	operation, before := admission.Create, runtime.Object(nil)
	if old != nil {
		operation, before = admission.Update, old
	}
	return p.Validate(context.Background(),
		admission.NewAttributesRecord(shoot, before, gardencore.Kind("Shoot").WithVersion("v1beta1"), shoot.Namespace, shoot.Name,
			gardencore.Resource("shoots").WithVersion("v1beta1"), "", operation, nil, false, nil), nil)
}

func check(t *testing.T, err error, refused string) {
	t.Helper()
	if (err == nil) != (refused == "") || err != nil && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), refused)) {
		t.Errorf("error %v, want a 403 about %q", err, refused)
	}
}

func TestMetrics(t *testing.T) {
	limit := func(metric corev1.ResourceName, value string) corev1.ResourceList {
		return corev1.ResourceList{metric: resource.MustParse(value)}
	}
	change := func(f func(*gardencore.Shoot)) *gardencore.Shoot {
		shoot := shootWithQuota("a", "shoot")
		f(shoot)
		return shoot
	}
	plain, viaCredentials := shootWithQuota("a", "other"), shootWithQuota("b", "other")
	viaCredentials.Spec.SecretBindingName, viaCredentials.Spec.CredentialsBindingName = nil, new("credentials")
	for name, test := range map[string]struct {
		scope   string
		limit   corev1.ResourceList
		others  []*gardencore.Shoot
		shoot   *gardencore.Shoot
		old     *gardencore.Shoot
		refused string
	}{
		"just enough":           {limit: limit(gardencore.QuotaMetricCPU, "4")},
		"too little":            {limit: limit(gardencore.QuotaMetricCPU, "3900m"), refused: "cpu"},
		"others count":          {limit: limit(gardencore.QuotaMetricMemory, "15Gi"), others: []*gardencore.Shoot{plain}, refused: "memory"},
		"it counts once":        {limit: limit(gardencore.QuotaMetricCPU, "4"), others: []*gardencore.Shoot{shootWithQuota("a", "shoot")}},
		"not of other projects": {scope: "Project", limit: limit(gardencore.QuotaMetricCPU, "4"), others: []*gardencore.Shoot{viaCredentials}},
		"of the credentials": {scope: "Secret", limit: limit(gardencore.QuotaMetricCPU, "7"),
			others: []*gardencore.Shoot{viaCredentials}, refused: "cpu"},
		"standard storage":   {limit: limit(gardencore.QuotaMetricStorageStandard, "39Gi"), refused: "storage.standard"},
		"no premium storage": {limit: limit(gardencore.QuotaMetricStoragePremium, "0")},
		"storage of the machine": {limit: limit(gardencore.QuotaMetricStoragePremium, "99Gi"), refused: "storage.premium",
			shoot: change(func(s *gardencore.Shoot) {
				s.Spec.Provider.Workers[0].Machine.Type, s.Spec.Provider.Workers[0].Volume = "full", nil
			})},
		"ingress needs a load balancer": {limit: limit(gardencore.QuotaMetricLoadbalancer, "1"), refused: "loadbalancer",
			old: shootWithQuota("a", "shoot"),
			shoot: change(func(s *gardencore.Shoot) {
				s.Spec.Addons = &gardencore.Addons{NginxIngress: &gardencore.NginxIngress{Addon: gardencore.Addon{Enabled: true}}}
			})},
		"unchanged": {limit: limit(gardencore.QuotaMetricCPU, "0"), old: shootWithQuota("a", "shoot")},
		"more machines": {limit: limit(gardencore.QuotaMetricCPU, "4"), old: shootWithQuota("a", "shoot"),
			shoot: change(func(s *gardencore.Shoot) { s.Spec.Provider.Workers[0].Maximum = 3 }), refused: "cpu"},
		"being deleted": {limit: limit(gardencore.QuotaMetricCPU, "0"),
			shoot: change(func(s *gardencore.Shoot) { s.DeletionTimestamp = &metav1.Time{} })},
		"unknown machine": {shoot: change(func(s *gardencore.Shoot) { s.Spec.Provider.Workers[0].Machine.Type = "odd" }),
			refused: "spec.provider.workers[0].machine.type"},
		"no storage at all": {shoot: change(func(s *gardencore.Shoot) { s.Spec.Provider.Workers[0].Volume = nil }),
			refused: "spec.provider.workers[0].volume"},
		"odd volume class": {shoot: change(func(s *gardencore.Shoot) { s.Spec.Provider.Workers[0].Volume.Type = new("tape") }),
			refused: "spec.provider.workers[0].volume.type"},
		"odd volume size": {shoot: change(func(s *gardencore.Shoot) { s.Spec.Provider.Workers[0].Volume.VolumeSize = "big" }),
			refused: "spec.provider.workers[0].volume.size"},
		"unknown binding": {shoot: change(func(s *gardencore.Shoot) { s.Spec.SecretBindingName = new("odd") }),
			refused: "spec.secretBindingName"},
		"no binding": {limit: limit(gardencore.QuotaMetricCPU, "0"),
			shoot: change(func(s *gardencore.Shoot) { s.Spec.SecretBindingName = nil })},
		"unknown profile": {shoot: change(func(s *gardencore.Shoot) { s.Spec.CloudProfile.Name = "odd" }), refused: "spec.cloudProfile.name"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.scope == "" {
				test.scope = "Project"
			}
			if test.shoot == nil {
				test.shoot = shootWithQuota("a", "shoot")
			}
			check(t, runValidateShootQuota(newQuotaPlugin(t, test.others, newQuota("quota", test.scope, nil, test.limit)), test.shoot,
				test.old), test.refused)
		})
	}
	t.Run("unknown quota", func(t *testing.T) {
		check(t, runValidateShootQuota(newQuotaPlugin(t, nil, newQuota("gone", "Project", nil, nil)), plain, plain), "spec.secretBindingName")
	})
}

func TestLifetime(t *testing.T) {
	p := newQuotaPlugin(t, nil, newQuota("long", "Project", new(int32(7)), nil), newQuota("short", "Secret", new(int32(2)), nil))
	longest := newQuotaPlugin(t, nil, newQuota("longest", "Project", new(int32(math.MaxInt32)), nil))
	path := "metadata.annotations[" + v1beta1constants.ShootExpirationTimestamp + "]"
	for name, test := range map[string]struct{ before, after, refused string }{
		"within":    {after: now.Add(48 * time.Hour).Format(time.RFC3339)},
		"beyond":    {after: now.Add(49 * time.Hour).Format(time.RFC3339), refused: path},
		"unchanged": {before: "2030-01-01T00:00:00Z", after: "2030-01-01T00:00:00Z"},
		"removed":   {before: "2030-01-01T00:00:00Z"},
		"no time":   {after: "soon", refused: path},
	} {
		t.Run(name, func(t *testing.T) {
			expiring := func(timestamp string) *gardencore.Shoot {
				shoot := shootWithQuota("a", "shoot")
				if timestamp != "" {
					metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.ShootExpirationTimestamp, timestamp)
				}
				return shoot
			}
			check(t, runValidateShootQuota(p, expiring(test.after), expiring(test.before)), test.refused)
			if test.refused == path && test.after != "soon" {
				check(t, runValidateShootQuota(longest, expiring(test.after), expiring(test.before)), "")
			}
		})
	}
}
