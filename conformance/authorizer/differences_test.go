package authorizer

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gardener/gardener/pkg/utils/kubernetes/bootstraptoken"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// comparison has the answers to a request.
type comparison struct {
	request              *authorizer.AttributesRecord
	of                   authorizer.Authorizer // Gardener's
	gardener, gardenlite bool
}

func (c *comparison) String() string {
	r := c.request
	return fmt.Sprintf("%s %s/%s/%q %q/%q fields %v labels %v of %s in %q: Gardener %t, gardenlite %t", r.Verb, r.APIGroup, r.Resource, r.Subresource,
		r.Namespace, r.Name, r.FieldSelectorRequirements, r.LabelSelectorRequirements, r.User.GetName(), r.User.GetGroups(), c.gardener, c.gardenlite)
}

// tokenID is that of the bootstrap token of a Gardenlet or ManagedSeed.
func tokenID(name string) string {
	return bootstraptoken.TokenID(metav1.ObjectMeta{Namespace: "garden", Name: name})
}

// difference is one that is there on purpose.
type difference struct {
	reason string
	// more says that gardenlite allows it and Gardener does not, and not the other way round.
	more     bool
	is       func(c *comparison) bool
	explains int
}

// differences are described in docs/scoped-access.md, "Where it differs from Gardener".
var differences = []*difference{
	{reason: "a gardenlet has the name of a Seed, and an extension one name and one namespace in its user name and in its groups",
		is: func(c *comparison) bool {
			return !c.gardenlite && !gardenletName.MatchString(c.request.User.GetName()) && !c.isExtension()
		}},
	{reason: "extensions write Events, Leases and tokens of WorkloadIdentities, and read everything else", is: func(c *comparison) bool {
		r := c.request
		written := r.Resource == "events" || r.Resource == "leases" || r.Resource == "workloadidentities" && r.Verb == "create"
		return c.isExtension() && !slices.Contains(reads, r.Verb) && !written
	}},
	{reason: "objects are created in namespaces of the seed", is: func(c *comparison) bool {
		return c.request.Verb == "create" && c.resource().namespaced && !c.gardenerWould(func(r *authorizer.AttributesRecord) {
			r.Verb, r.APIGroup, r.Resource, r.Subresource, r.Name = "get", "", "namespaces", "", r.Namespace
		})
	}},
	{reason: "the deletion of what is not in the graph is decided by the name and the owner", is: func(c *comparison) bool {
		return c.request.Verb == "delete" && !c.gardenerWould(func(r *authorizer.AttributesRecord) { r.Verb = "update" })
	}},
	{reason: "the graph has no path from a BackupBucket to a seed that its BackupEntry leaves", is: func(c *comparison) bool {
		return slices.Contains([]string{"backupbuckets", "secrets", "workloadidentities"}, c.request.Resource) && slices.ContainsFunc(leavesBucket, func(m moved) bool {
			return m.from == c.seed() && slices.Contains([]string{"identity-" + m.to, "bucket-" + m.to, "generated-bucket-" + m.to}, c.request.Name)
		})
	}},
	{reason: "a label selector for the seed has one value", is: func(c *comparison) bool {
		return slices.Contains(lists, c.request.Verb) && slices.Contains([]string{"seeds", "shoots", "managedseeds"}, c.request.Resource) &&
			!c.gardenerWould(func(r *authorizer.AttributesRecord) {
				r.LabelSelectorRequirements = slices.DeleteFunc(slices.Clone(r.LabelSelectorRequirements), func(one labels.Requirement) bool {
					return one.Operator() != selection.In || len(one.ValuesUnsorted()) != 1
				})
			})
	}},
	{reason: "the Shoot garden/SEED needs a path to the seed", is: func(c *comparison) bool {
		return c.request.Verb == "get" && c.request.Resource == "shoots" && c.request.Namespace == "garden" && c.request.Name == c.seed()
	}},
	{reason: "a ManagedSeed, and what bootstraps its gardenlet, is changed by the parent: the graph has no path to its own Seed",
		is: func(c *comparison) bool {
			return c.request.Resource == "managedseeds" && c.request.Namespace == "garden" && c.request.Name == c.seed() ||
				c.request.Resource == "secrets" && c.seed() == "child" &&
					slices.Contains([]string{"managed-backup-west", "bootstrap-token-" + tokenID("child")}, c.request.Name)
		}},
	{reason: "subresources that a resource does not have are not allowed", is: func(c *comparison) bool {
		return c.request.Subresource != "" && !slices.Contains(c.resource().subresources, c.request.Subresource)
	}},
	{reason: "a name and a selector for another name contradict each other, which an API server never sends", is: func(c *comparison) bool {
		return slices.ContainsFunc(c.selectedNames(), func(name string) bool { return name != c.request.Name })
	}},

	{reason: "a name in the selector is that of the object, as it is in requests of an API server", more: true, is: func(c *comparison) bool {
		names := c.selectedNames()
		return len(names) > 0 && c.request.Name == "" && c.gardenerWould(func(r *authorizer.AttributesRecord) { r.Name = names[0] })
	}},
	{reason: "a Gardenlet is listed by its name, as other objects are, or by the selector that an API server makes the name of", more: true,
		is: func(c *comparison) bool {
			return slices.Contains(lists, c.request.Verb) && c.request.Resource == "gardenlets" && (c.request.Name == c.seed() ||
				c.gardenerWould(func(r *authorizer.AttributesRecord) { r.Verb = "get" }))
		}},
	{reason: "a namespace of a request for an object that is in none has no meaning", more: true, is: func(c *comparison) bool {
		return !c.resource().namespaced && c.request.Namespace != "" && c.gardenerWould(func(r *authorizer.AttributesRecord) { r.Namespace = "" })
	}},
	{reason: "a Seed leads to itself before it exists, and its gardenlet gets 404", more: true, is: func(c *comparison) bool {
		return c.request.Resource == "seeds" && c.seed() == missing && slices.Contains(append(c.selectedNames(), c.request.Name), missing)
	}},
	{reason: "the ManagedSeed of a seed may be looked for before it exists", more: true, is: func(c *comparison) bool {
		return slices.Contains(reads, c.request.Verb) && c.request.Resource == "managedseeds" && c.request.Namespace == "garden" &&
			(c.request.Name == c.seed() || slices.Contains(c.selectedNames(), c.seed()))
	}},
	{reason: "all may get the namespace garden", more: true, is: func(c *comparison) bool {
		return c.request.Verb == "get" && c.request.Resource == "namespaces" && c.request.Name == "garden"
	}},
	{reason: "the Lease of the election of a gardenlet is each gardenlet's", more: true, is: func(c *comparison) bool {
		return c.request.Resource == "leases" &&
			slices.Contains(append(c.selectedNames(), c.request.Name), "gardenlet-leader-election")
	}},
	{reason: "a gardenlet bootstraps ManagedSeeds with ServiceAccounts", more: true, is: func(c *comparison) bool {
		return c.request.Verb == "bind" && c.request.Resource == "clusterroles" && c.request.Name == "gardener.cloud:system:seed-bootstrapper" ||
			c.request.Verb == "create" && c.request.Subresource == "token" && strings.HasPrefix(c.request.Name, "gardenlet-bootstrap-")
	}},
}

var (
	reads = []string{"get", "list", "watch"}
	lists = reads[1:]

	gardenletName = regexp.MustCompile("^gardener.cloud:system:seed:([a-z0-9.-]+)$")
	extensionName = regexp.MustCompile("^system:serviceaccount:seed-([a-z0-9.-]+):extension-[a-z0-9.-]+$")

	// leavesBucket has the BackupEntries of seed.yaml that move.
	leavesBucket = []moved{{"east", "west"}, {"west", "east"}, {"east", "child"}}
)

type moved struct{ from, to string }

// explained reports whether there is a reason.
func (c *comparison) explained() bool {
	for _, d := range differences {
		if d.more == c.gardenlite && d.is(c) {
			d.explains++
			return true
		}
	}
	return false
}

// isExtension reports whether user name and groups are of one extension.
func (c *comparison) isExtension() bool {
	match := extensionName.FindStringSubmatch(c.request.User.GetName())
	return match != nil && slices.ContainsFunc(c.request.User.GetGroups(), func(g string) bool { return g == "system:serviceaccounts:seed-"+match[1] }) &&
		!slices.ContainsFunc(c.request.User.GetGroups(), func(g string) bool {
			return strings.HasPrefix(g, "system:serviceaccounts:") && g != "system:serviceaccounts:seed-"+match[1]
		})
}

// seed is that of the user.
func (c *comparison) seed() string {
	for _, name := range []*regexp.Regexp{gardenletName, extensionName} {
		if match := name.FindStringSubmatch(c.request.User.GetName()); match != nil {
			return match[1]
		}
	}
	return ""
}

func (c *comparison) resource() resource {
	return resources[slices.IndexFunc(resources, func(r resource) bool {
		return r.group == c.request.APIGroup && r.name == c.request.Resource
	})]
}

// selectedNames are those that the field selector is for.
func (c *comparison) selectedNames() (names []string) {
	for _, f := range c.request.FieldSelectorRequirements {
		if f.Field == "metadata.name" && f.Operator == selection.Equals {
			names = append(names, f.Value)
		}
	}
	return names
}

// gardenerWould reports whether Gardener allows another request.
func (c *comparison) gardenerWould(change func(*authorizer.AttributesRecord)) bool {
	other := *c.request
	other.FieldSelectorRequirements = append(fields.Requirements{}, c.request.FieldSelectorRequirements...)
	change(&other)
	decision, _, err := c.of.Authorize(context.Background(), &other)
	return err == nil && decision == authorizer.DecisionAllow
}
