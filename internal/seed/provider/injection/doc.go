// Package injection reads the annotations with which users make the provider simulator slow, or make it fail, for an
// object. It imports nothing of the project. The annotations are public: they are set by users, on the object in the
// garden (the gardenlet passes them on to the extension resource) or on the extension resource itself.
//
//	gardenlite.dev/delay: 90s
//
// Each operation on the object takes so long, from when it has begun: a duration as Go writes them, from 0 to 24h. It
// passes on the landscape's clock, and continues after a restart. A change takes effect on an operation that is waiting.
//
//	gardenlite.dev/fail: once
//	gardenlite.dev/fail: always
//	gardenlite.dev/fail: once:ERR_INFRA_QUOTA_EXCEEDED
//	gardenlite.dev/fail: always:ERR_INFRA_DEPENDENCIES the load balancer is still in use
//
// The next operation (once), or each operation (always), fails after the delay. The code is one of Gardener's error codes;
// the text, which may follow with or without a code, is what status.lastError says (at most 1024 characters). "once" is
// about one failure as long as the value stays the same: another text, or to remove it for a while, makes it fail once
// more. That it has failed is kept in the annotation gardenlite.dev/failed of the extension resource, and since when an
// operation is delayed in gardenlite.dev/started: both are the simulator's own. The gardenlet marks what it has passed on
// with gardenlite.dev/delay-from-garden and gardenlite.dev/fail-from-garden, so that it takes away nothing else.
//
// A value that cannot be understood fails the operation with ERR_CONFIGURATION_PROBLEM until it is corrected.
package injection
