package scheduler

import (
	"slices"
	"strings"
	"testing"
	"time"

	schedulerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/scheduler/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// newSeed returns a seed that is eligible for newShoot, with changes.
func newSeed(name string, changes ...func(*gardencorev1beta1.Seed)) *gardencorev1beta1.Seed {
	seed := &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: gardencorev1beta1.SeedSpec{
			Provider: gardencorev1beta1.SeedProvider{Type: "local", Region: "eu-west-1", Zones: []string{"a"}},
			Networks: gardencorev1beta1.SeedNetworks{Nodes: ptr.To("10.0.0.0/16"), Pods: "10.1.0.0/16", Services: "10.2.0.0/16"},
			Settings: &gardencorev1beta1.SeedSettings{Scheduling: &gardencorev1beta1.SeedSettingScheduling{Visible: true}},
		},
		Status: gardencorev1beta1.SeedStatus{
			LastOperation: &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded},
			Conditions:    []gardencorev1beta1.Condition{{Type: gardencorev1beta1.GardenletReady, Status: gardencorev1beta1.ConditionTrue}},
		},
	}
	for _, change := range changes {
		change(seed)
	}
	return seed
}

func newShoot(changes ...func(*gardencorev1beta1.Shoot)) *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Name: "shoot", Namespace: "garden-dev", UID: "shoot"},
		Spec: gardencorev1beta1.ShootSpec{
			CloudProfile:  &gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"},
			Region:        "eu-west-1",
			Provider:      gardencorev1beta1.Provider{Type: "local", Workers: []gardencorev1beta1.Worker{{Name: "w"}}},
			SchedulerName: ptr.To("default-scheduler"),
			Networking: &gardencorev1beta1.Networking{
				Nodes: ptr.To("10.3.0.0/16"), Pods: ptr.To("10.4.0.0/16"), Services: ptr.To("10.5.0.0/16"),
				IPFamilies: []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv4},
			},
		},
	}
	for _, change := range changes {
		change(shoot)
	}
	return shoot
}

func region(name string) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) { s.Spec.Provider.Region = name }
}

func provider(name string) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) { s.Spec.Provider.Type = name }
}

func labelled(key, value string) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) { s.Labels = map[string]string{key: value} }
}

func room(shoots string) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) {
		s.Status.Allocatable = corev1.ResourceList{gardencorev1beta1.ResourceShoots: resource.MustParse(shoots)}
	}
}

func condition(kind gardencorev1beta1.ConditionType, status gardencorev1beta1.ConditionStatus) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) {
		s.Status.Conditions = slices.DeleteFunc(s.Status.Conditions, func(c gardencorev1beta1.Condition) bool { return c.Type == kind })
		s.Status.Conditions = append(s.Status.Conditions, gardencorev1beta1.Condition{Type: kind, Status: status})
	}
}

func withBackup(s *gardencorev1beta1.Seed) {
	s.Spec.Backup = &gardencorev1beta1.Backup{Provider: "local"}
}

func invisible(s *gardencorev1beta1.Seed) { s.Spec.Settings.Scheduling.Visible = false }

func deleting(s *gardencorev1beta1.Seed) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func taint(key string, value *string) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) {
		s.Spec.Taints = append(s.Spec.Taints, gardencorev1beta1.SeedTaint{Key: key, Value: value})
	}
}

func zones(names ...string) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) { s.Spec.Provider.Zones = names }
}

func zoneMode(mode gardencorev1beta1.ZoneSelectionMode) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) {
		s.Spec.Settings.ZoneSelection = &gardencorev1beta1.SeedSettingZoneSelection{Mode: mode}
	}
}

func defaultDomain(domain string) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) {
		s.Spec.DNS.Defaults = append(s.Spec.DNS.Defaults, gardencorev1beta1.SeedDNSProviderConfig{Domain: domain})
	}
}

func ipv6Seed(nodes, pods, services string) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) {
		s.Spec.Networks = gardencorev1beta1.SeedNetworks{Nodes: &nodes, Pods: pods, Services: services}
	}
}

func shootDefaults(pods, services *string) func(*gardencorev1beta1.Seed) {
	return func(s *gardencorev1beta1.Seed) {
		s.Spec.Networks.ShootDefaults = &gardencorev1beta1.ShootNetworks{Pods: pods, Services: services}
	}
}

func networks(families string, nodes, pods, services *string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) {
		s.Spec.Networking = &gardencorev1beta1.Networking{Nodes: nodes, Pods: pods, Services: services,
			IPFamilies: []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamily(families)}}
	}
}

func tolerates(key string, value *string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) {
		s.Spec.Tolerations = append(s.Spec.Tolerations, gardencorev1beta1.Toleration{Key: key, Value: value})
	}
}

func workerless(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers = nil }

func zonalShoot(s *gardencorev1beta1.Shoot) {
	s.Spec.ControlPlane = &gardencorev1beta1.ControlPlane{HighAvailability: &gardencorev1beta1.HighAvailability{
		FailureTolerance: gardencorev1beta1.FailureTolerance{Type: gardencorev1beta1.FailureToleranceTypeZone}}}
}

func workersIn(names ...string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers[0].Zones = names }
}

func pinned(zones ...string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) { s.Spec.ControlPlane = &gardencorev1beta1.ControlPlane{Zones: zones} }
}

func domain(name string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) { s.Spec.DNS = &gardencorev1beta1.DNS{Domain: &name} }
}

func shootRegion(name string) func(*gardencorev1beta1.Shoot) {
	return func(s *gardencorev1beta1.Shoot) { s.Spec.Region = name }
}

func selector(key, value string, providerTypes ...string) *gardencorev1beta1.SeedSelector {
	s := &gardencorev1beta1.SeedSelector{ProviderTypes: providerTypes}
	if key != "" {
		s.MatchLabels = map[string]string{key: value}
	}
	return s
}

// one returns the message if the only seed is a, and not eligible.
func one(why string) string { return "0/1 seeds are eligible: {a => " + why + "}" }

type landscapeTest struct {
	name  string
	l     Landscape
	shoot func(*gardencorev1beta1.Shoot)
	// want is the name of the expected seed; message is the expected message if there is no seed.
	want, message string
}

func runLandscapes(t *testing.T, tests []landscapeTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if (test.want == "") == (test.message == "") {
				t.Fatal("the test must want a seed or a message")
			}
			test.l.Project = "dev"
			test.l.Shoot = newShoot()
			if test.shoot != nil {
				test.shoot(test.l.Shoot)
			}
			seed, reasons := Choose(test.l)
			if seed != test.want {
				t.Errorf("got seed %q, want %q: %s", seed, test.want, reasons)
			}
			if seed == "" && reasons.String() != test.message {
				t.Errorf("got message\n%s\nwant\n%s", reasons, test.message)
			}
			if seed != "" && len(reasons.Seeds) != len(test.l.Seeds)-1 {
				t.Errorf("not every other seed has a reason: %v", reasons.Seeds)
			}
			// The order in which the cache lists the seeds does not change the result.
			slices.Reverse(test.l.Seeds)
			if again, other := Choose(test.l); again != seed || other.String() != reasons.String() {
				t.Errorf("in reverse order, seed %q is chosen, not %q: %s", again, seed, other)
			}
		})
	}
}

type seeds = []*gardencorev1beta1.Seed

func TestChooseUsableSeeds(t *testing.T) {
	ready, unknown := gardencorev1beta1.ConditionTrue, gardencorev1beta1.ConditionUnknown
	runLandscapes(t, []landscapeTest{
		{name: "no seeds", message: "there are no seeds in the garden"},
		{name: "one seed", l: Landscape{Seeds: seeds{newSeed("a")}}, want: "a"},
		{name: "fewest Shoots first",
			l: Landscape{Seeds: seeds{newSeed("a"), newSeed("b"), newSeed("c")}, Usage: map[string]int{"a": 2, "b": 1, "c": 3}}, want: "b"},
		{name: "by name among equals",
			l: Landscape{Seeds: seeds{newSeed("c"), newSeed("b"), newSeed("d")}, Usage: map[string]int{"b": 1, "c": 1, "d": 1}}, want: "b"},
		{name: "an empty seed of another region does not count",
			l: Landscape{Seeds: seeds{newSeed("a", region("us")), newSeed("b")}, Usage: map[string]int{"b": 9}}, want: "b"},
		{name: "being deleted", l: Landscape{Seeds: seeds{newSeed("a", deleting)}}, message: one("seed is being deleted")},
		{name: "invisible", l: Landscape{Seeds: seeds{newSeed("a", invisible), newSeed("b")}, Usage: map[string]int{"b": 1}}, want: "b"},
		{name: "only an invisible one", l: Landscape{Seeds: seeds{newSeed("a", invisible)}}, message: one("seed is not visible for scheduling")},
		{name: "no settings are the default ones",
			l: Landscape{Seeds: seeds{newSeed("a", func(s *gardencorev1beta1.Seed) { s.Spec.Settings = nil })}}, want: "a"},
		{name: "never reconciled", l: Landscape{Seeds: seeds{newSeed("a", func(s *gardencorev1beta1.Seed) { s.Status.LastOperation = nil })}},
			message: one("seed has not been reconciled yet")},
		{name: "gardenlet silent", l: Landscape{Seeds: seeds{newSeed("a", condition(gardencorev1beta1.GardenletReady, unknown))}},
			message: one("seed is not ready: condition GardenletReady is Unknown")},
		{name: "gardenlet never heard of", l: Landscape{Seeds: seeds{newSeed("a", func(
			s *gardencorev1beta1.Seed) {
			s.Status.Conditions = nil
		})}}, message: one("seed is not ready: condition GardenletReady is missing")},
		{name: "backup without its bucket", l: Landscape{Seeds: seeds{newSeed("a", withBackup)}},
			message: one("seed is not ready: condition BackupBucketsReady is missing")},
		{name: "backup with its bucket",
			l: Landscape{Seeds: seeds{newSeed("a", withBackup, condition(gardencorev1beta1.SeedBackupBucketsReady, ready))}}, want: "a"},
		{name: "bucket not ready, but without backup",
			l: Landscape{Seeds: seeds{newSeed("a", condition(gardencorev1beta1.SeedBackupBucketsReady, unknown))}}, want: "a"},
		{name: "reconciliations stopped", l: Landscape{Seeds: seeds{newSeed("a", func(s *gardencorev1beta1.Seed) {
			s.Annotations = map[string]string{"shoot.gardener.cloud/emergency-stop-reconciliations": "true"}
		})}}, message: one("seed has its Shoot reconciliations stopped")},
		{name: "a reason for each seed",
			l: Landscape{Seeds: seeds{newSeed("c", region("us")), newSeed("a", deleting), newSeed("b", provider("aws"))}},
			message: `0/3 seeds are eligible: {a => seed is being deleted, b => seed has provider type "aws", not "local", c ` +
				`=> seed is in region "us", not "eu-west-1"}`},
	})
}

func TestChooseSelectorsAndProviders(t *testing.T) {
	broken := &gardencorev1beta1.SeedSelector{
		LabelSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}
	forTests := func(s *gardencorev1beta1.Shoot) { s.Spec.Purpose = ptr.To(gardencorev1beta1.ShootPurposeTesting) }
	runLandscapes(t, []landscapeTest{
		{name: "Shoot's selector", l: Landscape{Seeds: seeds{newSeed("a"), newSeed("b", labelled("tier", "gold"))}},
			shoot: func(s *gardencorev1beta1.Shoot) { s.Spec.SeedSelector = selector("tier", "gold") }, want: "b"},
		{name: "Shoot's selector matches none", l: Landscape{Seeds: seeds{newSeed("a", labelled("tier", "lead"))}},
			shoot:   func(s *gardencorev1beta1.Shoot) { s.Spec.SeedSelector = selector("tier", "gold") },
			message: one("seed does not match the seed selector of the Shoot (tier=gold)")},
		{name: "CloudProfile's selector", l: Landscape{Seeds: seeds{newSeed("a"), newSeed("b", labelled("tier", "gold"))},
			SeedSelector: selector("tier", "gold")}, want: "b"},
		{name: "CloudProfile's selector matches none", l: Landscape{Seeds: seeds{newSeed("a")}, SeedSelector: selector("tier", "gold")},
			message: one("seed does not match the seed selector of the CloudProfile (tier=gold)")},
		{name: "selectors that exclude each other", l: Landscape{Seeds: seeds{newSeed("a", labelled("tier", "gold"))},
			SeedSelector: selector("tier", "gold")}, shoot: func(s *gardencorev1beta1.Shoot) { s.Spec.SeedSelector = selector("tier", "lead") },
			message: one("seed does not match the seed selector of the Shoot (tier=lead)")},
		{name: "selector that cannot be read", l: Landscape{Seeds: seeds{newSeed("a")}, SeedSelector: broken},
			message: `reading the seed selector of the CloudProfile: "Near" is not a valid label selector operator`},
		{name: "other provider", l: Landscape{Seeds: seeds{newSeed("a", provider("aws"))}},
			message: one(`seed has provider type "aws", not "local"`)},
		{name: "the CloudProfile's providers exclude the Shoot's own", l: Landscape{Seeds: seeds{newSeed("a")},
			SeedSelector: selector("", "", "aws", "gcp")}, message: one(`seed has provider type "local", not "aws, gcp"`)},
		{name: "SameRegion is for the same provider, whatever the CloudProfile allows", l: Landscape{Seeds: seeds{newSeed("a", provider("aws"))},
			SeedSelector: selector("", "", "*")}, message: one(`seed has provider type "aws", not "local"`)},
		{name: "MinimalDistance goes to another provider", l: Landscape{Seeds: seeds{newSeed("a", provider("aws"))},
			SeedSelector: selector("", "", "*"), Strategy: schedulerconfigv1alpha1.MinimalDistance}, want: "a"},
		{name: "MinimalDistance goes to a provider by name", l: Landscape{Seeds: seeds{newSeed("a", provider("aws")),
			newSeed("b", provider("gcp"))}, SeedSelector: selector("", "", "gcp"), Strategy: schedulerconfigv1alpha1.MinimalDistance}, want: "b"},
		{name: "Shoots for tests go to any region", l: Landscape{Seeds: seeds{newSeed("a", region("us"))}}, shoot: forTests, want: "a"},
		{name: "Shoots for tests stay with their provider", l: Landscape{Seeds: seeds{newSeed("a", provider("aws"))},
			SeedSelector: selector("", "", "*"), Strategy: schedulerconfigv1alpha1.MinimalDistance}, shoot: forTests,
			message: one(`seed has provider type "aws", not "local"`)},
	})
}

func TestChooseZonesTaintsAndRoom(t *testing.T) {
	restricted := func(s *gardencorev1beta1.Shoot) {
		s.Spec.AccessRestrictions = []gardencorev1beta1.AccessRestrictionWithOptions{
			{AccessRestriction: gardencorev1beta1.AccessRestriction{Name: "eu-access-only"}}}
	}
	supports := func(s *gardencorev1beta1.Seed) {
		s.Spec.AccessRestrictions = []gardencorev1beta1.AccessRestriction{{Name: "eu-access-only"}}
	}
	prefer, enforce := zoneMode(gardencorev1beta1.ZoneSelectionModePrefer), zoneMode(gardencorev1beta1.ZoneSelectionModeEnforce)
	runLandscapes(t, []landscapeTest{
		{name: "high availability over zones", l: Landscape{Seeds: seeds{newSeed("a", zones("a", "b")), newSeed("b", zones("a", "b", "c"))}},
			shoot: zonalShoot, want: "b"},
		{name: "too few zones for high availability", l: Landscape{Seeds: seeds{newSeed("a", zones("a", "b"))}},
			shoot: zonalShoot, message: one(`seed has 2 of the 3 zones that failure tolerance type "zone" needs`)},
		{name: "enforced zone selection", l: Landscape{Seeds: seeds{newSeed("a", enforce), newSeed("b", enforce, zones("x"))}},
			shoot: workersIn("x"), want: "b"},
		{name: "enforced zone selection without a common zone", l: Landscape{Seeds: seeds{newSeed("a", enforce)}},
			shoot: workersIn("x"), message: one("seed has none of the workers' zones, and enforces zone selection")},
		{name: "enforced zone selection, no zones named", l: Landscape{Seeds: seeds{newSeed("a", enforce)}}, want: "a"},
		{name: "zone selection is not for control planes in all zones", l: Landscape{Seeds: seeds{newSeed("a", enforce, zones("a", "b", "c"))}},
			shoot: func(s *gardencorev1beta1.Shoot) { zonalShoot(s); workersIn("x")(s) }, want: "a"},
		{name: "preferred zones", l: Landscape{Seeds: seeds{newSeed("a", prefer), newSeed("b", prefer, zones("x"))},
			Usage: map[string]int{"b": 5}}, shoot: workersIn("x"), want: "b"},
		{name: "preferred zones nowhere", l: Landscape{Seeds: seeds{newSeed("a", prefer), newSeed("b", prefer)}},
			shoot: workersIn("x"), want: "a"},
		{name: "pinned", l: Landscape{Seeds: seeds{newSeed("a", enforce, zones("a")), newSeed("b", prefer, zones("a", "b"))}},
			shoot: func(s *gardencorev1beta1.Shoot) { pinned("b")(s); workersIn("x")(s) }, want: "b"},
		{name: "pinned nowhere", l: Landscape{Seeds: seeds{newSeed("a", zones("a"))}}, shoot: pinned("b"),
			message: one("seed has the zones [a], not all of [b], to which the control plane is pinned")},
		{name: "pinned with high availability over zones", l: Landscape{Seeds: seeds{newSeed("a", zones("a", "b", "c"))}},
			shoot: func(s *gardencorev1beta1.Shoot) { zonalShoot(s); s.Spec.ControlPlane.Zones = []string{"x", "y", "z"} }, want: "a"},
		{name: "access restriction", l: Landscape{Seeds: seeds{newSeed("a"), newSeed("b", supports)}}, shoot: restricted, want: "b"},
		{name: "access restriction nowhere", l: Landscape{Seeds: seeds{newSeed("a")}}, shoot: restricted,
			message: one(`seed does not support access restriction "eu-access-only"`)},
		{name: "taint", l: Landscape{Seeds: seeds{newSeed("a", taint("protected", nil))}},
			message: one(`Shoot does not tolerate the seed's taint "protected"`)},
		{name: "tolerated taint", l: Landscape{Seeds: seeds{newSeed("a", taint("protected", nil))}},
			shoot: tolerates("protected", ptr.To("any")), want: "a"},
		{name: "taint tolerated with its value", l: Landscape{Seeds: seeds{newSeed("a", taint("for", ptr.To("me")))}},
			shoot: tolerates("for", ptr.To("me")), want: "a"},
		{name: "taint tolerated with another value", l: Landscape{Seeds: seeds{newSeed("a", taint("for", ptr.To("me")))}},
			shoot: tolerates("for", ptr.To("you")), message: one(`Shoot does not tolerate the seed's taint "for"`)},
		{name: "one of two taints tolerated", l: Landscape{Seeds: seeds{newSeed("a", taint("x", nil), taint("y", nil))}},
			shoot: tolerates("x", nil), message: one(`Shoot does not tolerate the seed's taint "y"`)},
		{name: "the last place", l: Landscape{Seeds: seeds{newSeed("a", room("3"))}, Usage: map[string]int{"a": 2}}, want: "a"},
		{name: "no place", l: Landscape{Seeds: seeds{newSeed("a", room("3"))}, Usage: map[string]int{"a": 3}},
			message: one("seed has no room: 3 of 3 Shoots")},
		{name: "a full seed with fewer Shoots",
			l: Landscape{Seeds: seeds{newSeed("a", room("1")), newSeed("b", room("10"))}, Usage: map[string]int{"a": 1, "b": 5}}, want: "b"},
		{name: "no limit", l: Landscape{Seeds: seeds{newSeed("a")}, Usage: map[string]int{"a": 10000}}, want: "a"},
	})
}

func TestChooseNetworksAndDomains(t *testing.T) {
	v6 := ipv6Seed("fd00:0::/48", "fd00:1::/48", "fd00:2::/48")
	runLandscapes(t, []landscapeTest{
		{name: "IPv4 networks may be those of the seed", l: Landscape{Seeds: seeds{newSeed("a")}},
			shoot: networks("IPv4", ptr.To("10.0.0.0/16"), ptr.To("10.1.0.0/16"), ptr.To("10.2.0.0/16")), want: "a"},
		{name: "IPv4 networks of the VPN", l: Landscape{Seeds: seeds{newSeed("a")}}, shoot: networks("IPv4", nil, ptr.To("244.1.0.0/16"), nil),
			message: one("Shoot's pod network 244.1.0.0/16 overlaps with the reserved range 244.0.0.0/8")},
		{name: "IPv6 pods in the seed's nodes", l: Landscape{Seeds: seeds{newSeed("a", v6)}}, shoot: networks("IPv6", nil,
			ptr.To("fd00:0::/64"), nil), message: one("Shoot's pod network fd00:0::/64 overlaps with the seed's node network fd00:0::/48")},
		{name: "IPv6 around the seed's services", l: Landscape{Seeds: seeds{newSeed("a", v6)}}, shoot: networks("IPv6", nil, nil,
			ptr.To("fd00:2::/32")), message: one("Shoot's service network fd00:2::/32 overlaps with the seed's service network fd00:2::/48")},
		{name: "free IPv6 networks", l: Landscape{Seeds: seeds{newSeed("a", v6)}},
			shoot: networks("IPv6", ptr.To("fd00:a::/48"), ptr.To("fd00:b::/48"), ptr.To("fd00:c::/48")), want: "a"},
		{name: "another seed has free IPv6 networks", l: Landscape{Seeds: seeds{newSeed("a", v6), newSeed("b", ipv6Seed("fd01:0::/48",
			"fd01:1::/48", "fd01:2::/48"))}, Usage: map[string]int{"b": 2}}, shoot: networks("IPv6", nil, ptr.To("fd00:1::/64"), nil), want: "b"},
		{name: "the seed's defaults for Shoots overlap",
			l: Landscape{Seeds: seeds{newSeed("a", v6, shootDefaults(ptr.To("fd00:1::/56"), nil))}}, shoot: networks("IPv6", nil, nil, nil),
			message: one("Shoot's pod network fd00:1::/56 overlaps with the seed's pod network fd00:1::/48")},
		{name: "a workerless Shoot takes no pod network", l: Landscape{Seeds: seeds{newSeed("a", v6, shootDefaults(ptr.To("fd00:1::/56"),
			nil))}}, shoot: func(s *gardencorev1beta1.Shoot) { workerless(s); networks("IPv6", nil, nil, nil)(s) }, want: "a"},
		{name: "defaults of another family are not taken", l: Landscape{Seeds: seeds{
			newSeed("a", v6, shootDefaults(ptr.To("fd00:1::/56"), ptr.To("fd00:2::/56")))}}, shoot: networks("IPv4", nil, nil, nil), want: "a"},
		{name: "workerless without networking", l: Landscape{Seeds: seeds{newSeed("a", v6)}},
			shoot: func(s *gardencorev1beta1.Shoot) { workerless(s); s.Spec.Networking = nil }, want: "a"},
		{name: "networks in the status count", l: Landscape{Seeds: seeds{newSeed("a", v6)}}, shoot: func(s *gardencorev1beta1.Shoot) {
			networks("IPv6", nil, nil, nil)(s)
			s.Status.Networking = &gardencorev1beta1.NetworkingStatus{Pods: []string{"fd00:1::/64"}, Services: []string{"fd00:c::/64"}}
		}, message: one("Shoot's pod network fd00:1::/64 overlaps with the seed's pod network fd00:1::/48")},
		{name: "default domain of one seed", l: Landscape{Seeds: seeds{newSeed("a"), newSeed("b", defaultDomain("shoots.example"))},
			Usage: map[string]int{"b": 3}}, shoot: domain("shoot.dev.shoots.example"), want: "b"},
		{name: "default domain for another project", l: Landscape{Seeds: seeds{newSeed("a", defaultDomain("shoots.example"))}},
			shoot: domain("shoot.prod.shoots.example"), message: one(`seed does not serve the domain "shoot.prod.shoots.example"`)},
		{name: "own domain", l: Landscape{Seeds: seeds{newSeed("a", defaultDomain("shoots.example"))}},
			shoot: domain("cluster.mine.example"), want: "a"},
	})
}

func TestChooseDistance(t *testing.T) {
	const strategy = schedulerconfigv1alpha1.MinimalDistance
	config := map[string]string{"eu-west-1": "eu-east-1: 50\nus-east-1: 20\neu-west-2: 90\n"}
	runLandscapes(t, []landscapeTest{
		{name: "SameRegion is the default", l: Landscape{Seeds: seeds{newSeed("a", region("eu-west-2"))}},
			message: one(`seed is in region "eu-west-2", not "eu-west-1"`)},
		{name: "SameRegion does not look at the ConfigMap", l: Landscape{Seeds: seeds{newSeed("a", region("us-east-1"))}, RegionConfig: config,
			Strategy: schedulerconfigv1alpha1.SameRegion}, message: one(`seed is in region "us-east-1", not "eu-west-1"`)},
		{name: "by configuration", l: Landscape{Seeds: seeds{newSeed("a", region("eu-east-1")), newSeed("b", region("us-east-1"))},
			RegionConfig: config, Strategy: strategy}, want: "b"},
		{name: "a region is nearest to itself", l: Landscape{Seeds: seeds{newSeed("a", region("us-east-1")), newSeed("b")},
			RegionConfig: config, Strategy: strategy, Usage: map[string]int{"b": 7}}, want: "b"},
		{name: "unless it is configured otherwise", l: Landscape{Seeds: seeds{newSeed("a", region("us-east-1")), newSeed("b")},
			RegionConfig: map[string]string{"eu-west-1": "eu-west-1: 30\nus-east-1: 20"}, Strategy: strategy}, want: "a"},
		{name: "equally near by configuration, fewest Shoots", l: Landscape{Seeds: seeds{newSeed("a", region("x1")), newSeed("b", region("y1"))},
			RegionConfig: map[string]string{"eu-west-1": "x1: 1\ny1: 1"}, Strategy: strategy, Usage: map[string]int{"a": 2, "b": 1}}, want: "b"},
		{name: "a region that is not configured", l: Landscape{Seeds: seeds{newSeed("a", region("eu-west-3")),
			newSeed("b", region("us-east-1"))}, RegionConfig: config, Strategy: strategy}, want: "b"},
		{name: "no seed's region is configured: by name", l: Landscape{Seeds: seeds{newSeed("a", region("ap-south-7")),
			newSeed("b", region("eu-west-3"))}, RegionConfig: config, Strategy: strategy}, want: "b"},
		{name: "the Shoot's region is not configured: by name", l: Landscape{Seeds: seeds{newSeed("a", region("us-east-1")),
			newSeed("b", region("eu-east-1"))}, RegionConfig: config, Strategy: strategy}, shoot: shootRegion("eu-north-1"), want: "b"},
		{name: "by name, a nearer one is full",
			l: Landscape{Seeds: seeds{newSeed("a", room("0")), newSeed("b", region("eu-west-2"))}, Strategy: strategy}, want: "b"},
		{name: "by name, the same provider is nearer", l: Landscape{Seeds: seeds{newSeed("a", provider("aws")), newSeed("b")},
			SeedSelector: selector("", "", "*"), Strategy: strategy, Usage: map[string]int{"b": 1}}, want: "b"},
		{name: "configuration that cannot be read",
			l: Landscape{Seeds: seeds{newSeed("a")}, RegionConfig: map[string]string{"eu-west-1": "- far"}, Strategy: strategy},
			message: `reading the distances of region "eu-west-1" in the region ConfigMap, which must be a map from regions to whole numbers: ` +
				`error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]int`},
		{name: "unknown strategy", l: Landscape{Seeds: seeds{newSeed("a")}, Strategy: "Dice"},
			message: `strategy "Dice" is not known to the scheduler; configure one of [SameRegion MinimalDistance]`},
	})
}

func TestNameDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"eu-west-1", "eu-west-1", 0},
		{"eu-west-1", "eu-west-2", 2},
		{"eu-west-1", "eu-east-1", 2},
		{"eu-west-1", "us-west-1", 4},
		{"europe", "eu", 8},
		{"eu-central-1", "eu-1", 5},
		{"", "ab", 4},
	} {
		if got := nameDistance(test.a, test.b); got != test.want {
			t.Errorf("%s to %s is %d, want %d", test.a, test.b, got, test.want)
		}
		if there, back := nameDistance(test.a, test.b), nameDistance(test.b, test.a); there != back {
			t.Errorf("%s to %s is %d, but back it is %d", test.a, test.b, there, back)
		}
	}
}

func TestUsage(t *testing.T) {
	on := func(spec, status *string) gardencorev1beta1.Shoot {
		return gardencorev1beta1.Shoot{Spec: gardencorev1beta1.ShootSpec{SeedName: spec}, Status: gardencorev1beta1.ShootStatus{SeedName: status}}
	}
	usage := ShootsPerSeed([]gardencorev1beta1.Shoot{
		on(nil, nil), on(ptr.To("a"), nil), on(ptr.To("a"), ptr.To("a")), on(ptr.To("a"), ptr.To("b")),
	})
	if len(usage) != 2 || usage["a"] != 3 || usage["b"] != 1 {
		t.Errorf("got %v, want 3 on a, and the one that moves on b too", usage)
	}
}

func TestReasonsAreForAllSeeds(t *testing.T) {
	seed, reasons := Choose(
		Landscape{Shoot: newShoot(), Seeds: seeds{newSeed("a"), newSeed("b"), newSeed("c", deleting)}, Usage: map[string]int{"a": 1}})
	if seed != "b" || len(reasons.Seeds) != 2 || !strings.Contains(reasons.Seeds[0].Why, "preferred") || reasons.Seeds[1].Seed != "c" {
		t.Errorf("got %s and %v", seed, reasons)
	}
}
