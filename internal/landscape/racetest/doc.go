// Package racetest has one test, which takes a whole landscape through its life: make check runs it with the race detector.
// It is a package of its own, so that no other test is compiled for that.
package racetest
