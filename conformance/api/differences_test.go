package api

import (
	"regexp"
	"slices"
)

// difference is one that is there on purpose, or because Gardener has a fault.
type difference struct {
	// about matches what is tried, and change what differs: "GARDENER'S ANSWER | GARDENLITE'S", or "FIELD: VALUE | VALUE".
	about, change *regexp.Regexp
	reason        string
	used          bool
}

func known(about, change, reason string) *difference {
	return &difference{about: regexp.MustCompile("(?s)" + about), change: regexp.MustCompile("(?s)" + change), reason: reason}
}

var differences = []*difference{
	known("^a kubeconfig with ", `^422 +.*validate-kubeconfig-secrets.* \| 422 .*\(not shown\)`,
		"Gardener repeats the kubeconfig, which has credentials, in the message"),
	known("", `^500 .* \| (403 Forbidden|422 Invalid)`, "Gardener answers 500 although the object is at fault"),
	known("", `^503 +error trying to reach service: stream error`, "Gardener's API server panics"),
	known("^P\\S+ Quota spec.metrics", `^\.spec\.metrics: \{\} \| null`,
		"gardenlite stores objects as protobuf, which has no empty maps"),
	known("^P\\S+ WorkloadIdentity", `^\.status\.sub: `, "it ends with the UID"),
	known("^POST \\w+ metadata", `^\.metadata\.name: `, "the name is random"),
	known("", `object does not belong to seed "diff" \| 403 +.*object does not belong to seed "diff": `,
		"gardenlite says what is missing"),
	known("", `Shoot.core.gardener.cloud "none" not found \| 403 +.*object does not belong to seed "diff": shoots "garden-diff/none" not found`,
		"gardenlite says that the object does not belong to the seed"),
	known("^a Backup(Bucket|Entry) of its seed$", `^201.* \| 403 +.*seed-restriction`,
		"a seed's BackupBuckets and BackupEntries have the names that its gardenlet gives them"),
	known("^a self-hosted Shoot creates ", `shoot-restriction.gardener.cloud`, "there are no self-hosted Shoots"),
	known("^P", `^\.spec\.maintenance\.timeWindow\.(begin|end): `, "the window is random"),
	known("", `^422 .*compilation failed: ERROR: .* \| 422 .*compilation failed: ERROR: `,
		"a message of a webhook is one line, so that no text of an object looks like another message"),
}

// unexplained returns the changes without a reason.
func unexplained(about string, changes []string) []string {
	return slices.DeleteFunc(changes, func(change string) bool {
		for _, d := range differences {
			if d.about.MatchString(about) && d.change.MatchString(change) {
				d.used = true
				return true
			}
		}
		return false
	})
}

// unused returns the reasons that explain nothing any more.
func unused() (reasons []string) {
	for _, d := range differences {
		if !d.used {
			reasons = append(reasons, d.reason)
		}
	}
	return reasons
}
