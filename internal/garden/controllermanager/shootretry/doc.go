// Package shootretry tries failed Shoots again whose operation failed because an infrastructure's rate limits were
// exceeded: some time after the failure, and not all of them at once, it asks for it by annotation as a user would.
//
// It may import API types and the kit beside it.
package shootretry
