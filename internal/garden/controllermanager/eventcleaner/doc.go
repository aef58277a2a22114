// Package eventcleaner deletes events that are about anything but Shoots once they are an hour old; events about Shoots
// stay as long as the garden keeps events.
//
// Only the metadata of events is kept in memory: an event itself is read when its time may have come. It may import API
// types and the kit beside it.
package eventcleaner
