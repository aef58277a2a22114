// Package shootretry retries failed Shoots whose operation exceeded the rate limits of an infrastructure: some time
// after the failure, with jitter, it sets the operation annotation retry as a user would.
//
// It may import API types and the kit beside it.
package shootretry
