// Package seedstatus is what the controllers that report about Seeds have in common: how a condition is written, how long
// one is Progressing before it is bad, and queues that wait on a clock.
//
// It may import API types and the kit beside it.
package seedstatus
