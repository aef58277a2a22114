// Package injection reads the annotations with which users make the provider simulator slow, or make it fail, for an
// object. It imports nothing of the project. The annotations are public: they are set by users, on the object in the
// garden (the gardenlet passes them on to the extension resource) or on the extension resource itself.
//
//	gardenlite.dev/delay: 90s
//
// Each operation on the object is delayed by this duration from its start: a Go duration from 0 to 24h. The delay uses
// the landscape's clock, and continues after a restart. A change takes effect on an operation that is waiting.
//
//	gardenlite.dev/fail: once
//	gardenlite.dev/fail: always
//	gardenlite.dev/fail: once:ERR_INFRA_QUOTA_EXCEEDED
//	gardenlite.dev/fail: always:ERR_INFRA_DEPENDENCIES the load balancer is still in use
//
//	gardenlite.dev/fail.Network: once.2
//
// The next operation (once), or each operation (always), fails after the delay. The code is one of Gardener's error
// codes; the text, which may follow with or without a code, is the message in status.lastError (at most 1024
// characters). "once" causes one failure as long as the value stays the same: another text, something else behind
// "once.", or removing the annotation for a while, causes one more. The simulator itself uses two annotations of the
// extension resource: gardenlite.dev/failed records the failure, and gardenlite.dev/started the start of a delayed
// operation. The gardenlet marks the annotations that it has passed on with gardenlite.dev/delay-from-garden and
// gardenlite.dev/fail-from-garden, so that it removes only those.
//
// A Shoot's annotations are for its Infrastructure and Worker, or for the kind at their end. "once" is one failure for
// the Shoot, at the first resource whose operation is due: the simulator records it in gardenlite.dev/failed of the
// Cluster.
//
// A value that cannot be understood fails the operation with ERR_CONFIGURATION_PROBLEM until it is corrected.
package injection
