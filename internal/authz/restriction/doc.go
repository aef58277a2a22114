// Package restriction is the SeedRestriction: the validating admission webhook that looks into the bodies of what
// gardenlets and extensions create, change and delete, where the authorizer sees names only ("SeedRestriction Admission
// Webhook Enablement" of Gardener's "Scoped API Access for gardenlets and Extensions").
//
// Create: an object must belong to the seed of the client. Update: a client gains nothing that it could not have
// created, above all no reference through which the dependency graph would open a path to another seed's secret
// (update.go and references.go; attacks_test.go tells the stories). Deleting: BackupBuckets and Seeds, and what the
// authorizer cannot know to exist (delete.go).
//
// Handler.Handle decides; Rules, MatchConditions and the resources in rules.go are what a ValidatingWebhookConfiguration
// needs. The package reads through the interface Reader, always live, never from a cache: an answer must not be older than
// the request. What only the dependency graph knows it asks through the interface Access. It may import
// seedidentity, bootstraprules, the API types and API machinery; NewReader adds client-go's dynamic client.
//
// It promises: requests of users other than gardenlets and extensions are allowed; of a gardenlet or an extension nothing
// is allowed that is malformed, unknown, or could not be looked up.
package restriction
