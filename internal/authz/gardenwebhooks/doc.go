// Package gardenwebhooks has the webhooks of Gardener's admission controller besides SeedRestriction: a table (All),
// and a file for each group of them. They protect what users would lose by mistake, and refuse what a Shoot could not
// be reconciled with. Names, paths, selectors and answers are those of Gardener v1.150, in which they are in
// pkg/admissioncontroller/webhook/admission; those for self-hosted Shoots are left out.
//
// The package reads the garden through a client without a cache, and finds the objects that refer to another in the
// resource dependency graph, because lists of all Shoots are long. It may import the graph, the API types and API
// machinery.
package gardenwebhooks
