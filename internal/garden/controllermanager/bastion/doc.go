// Package bastion deletes Bastions that have expired without a heartbeat, that have reached their maximum lifetime, or
// whose Shoot is deleted, is being deleted or has moved to another Seed (GEP-15).
//
// It may import API types, component and kit. A Bastion is requeued for exactly the time at which it expires. It is not
// deleted if its heartbeat has been updated concurrently, or if only the cache does not know its Shoot yet.
package bastion
