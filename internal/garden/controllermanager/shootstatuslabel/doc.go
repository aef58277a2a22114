// Package shootstatuslabel sets the status label of Shoots, so that they can be selected by it: healthy, progressing,
// unknown or unhealthy. The status is derived from the last operation, the last errors and the conditions.
//
// It may import API types and the kit beside it.
package shootstatuslabel
