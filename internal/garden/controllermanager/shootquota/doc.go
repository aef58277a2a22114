// Package shootquota deletes Shoots whose time is up: a Quota that the binding of a Shoot refers to may say for how many
// days a cluster lives. When it ends is an annotation on the Shoot, which can be prolonged there.
//
// It may import API types and the kit beside it.
package shootquota
