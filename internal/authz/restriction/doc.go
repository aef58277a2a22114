// Package restriction implements SeedRestriction: the validating admission webhook that checks the content of objects
// that gardenlets and extensions create, update and delete, whereas the authorizer sees only names ("SeedRestriction
// Admission Webhook Enablement" of Gardener's "Scoped API Access for gardenlets and Extensions").
//
// Create: an object must belong to the seed of the client. Update: a client gains nothing that it could not have
// created, in particular no reference through which the dependency graph would have a path to another seed's secret
// (update.go and references.go; attacks_test.go has the attacks). Delete: BackupBuckets and Seeds, and objects of whose
// existence the authorizer does not know (delete.go).
//
// Handler.Handle decides; Rules, MatchConditions and the resources in rules.go are for a
// ValidatingWebhookConfiguration. The package reads through the interface Reader, always live, never from a cache: an
// answer must not be older than the request. It uses the dependency graph through the interface Access. It may import
// seedidentity, bootstraprules, the API types and API machinery; NewReader adds client-go's dynamic client.
//
// It guarantees: requests of users other than gardenlets and extensions are allowed; requests of gardenlets and
// extensions that are malformed or unknown, or for which a lookup fails, are not.
package restriction
