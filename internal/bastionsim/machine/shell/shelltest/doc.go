// Package shelltest is the attempts to break out of a simulated machine and to use up its host, and the trap that tells
// whether one of them came through. It is data for tests: those of package shell run the attempts as scripts, those of
// package machine as commands and as what somebody types, over SSH. Nothing but tests imports it, and it imports nothing of
// the project.
package shelltest
