// Package bastion deletes Bastions that have expired without a heartbeat, that have reached their maximum lifetime, or
// whose Shoot is deleted, is being deleted or has moved to another Seed (GEP-15).
//
// It may import API types, component and the kit beside it. It promises to look at a Bastion again at the very time at
// which it ends, and not before. What was kept alive a moment before is not deleted, and neither is one whose Shoot the
// cache does not know yet.
package bastion
