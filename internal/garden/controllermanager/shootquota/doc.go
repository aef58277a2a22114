// Package shootquota deletes Shoots whose lifetime has ended: a Quota to which the binding of a Shoot refers may limit
// the lifetime of a cluster in days. An annotation on the Shoot contains the end, and users can prolong it there.
//
// It may import API types and the kit beside it.
package shootquota
