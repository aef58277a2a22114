// Package eventcleaner deletes events that do not concern Shoots once they are an hour old; events for Shoots are kept
// as long as the API server of the garden keeps events.
//
// Only the metadata of events is cached: the complete event is read when it may have expired. The package may import
// API types and kit.
package eventcleaner
