// Package shootstatuslabel says on each Shoot by a label how it is, so that Shoots can be selected by that: healthy,
// progressing, unknown or unhealthy. Its last operation, its errors and its conditions make it up.
//
// It may import API types and the kit beside it.
package shootstatuslabel
