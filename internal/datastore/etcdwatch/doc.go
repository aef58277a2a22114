// Package etcdwatch implements etcd's Watch service for a kine backend.
//
// An API server answers a consistent list from its watch cache once a progress notification reports that the cache has
// seen everything up to the current revision. kine's own Watch service sends that notification when its poll loop wakes
// the next time: up to a second after the last write, for every list. Here one subscription to the backend feeds all
// watches, so that the service knows, without a timer, which events have been delivered, and answers within a
// millisecond. It guarantees that
//
//   - each watch gets each event in its range once, in the order of revisions, from its start revision on;
//   - a progress notification for a revision is sent on a stream after all events up to it;
//   - a slow reader is cut off (maxPendingBytes), so that the others do not wait for it.
//
// It may import kine and etcd's API, and nothing of the project.
package etcdwatch
