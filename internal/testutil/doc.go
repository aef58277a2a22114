// Package testutil has helpers for tests, and only tests import it: polling with a deadline, checks for leaked
// goroutines, tests in a process of their own, unused ports, and seeds of random numbers. It imports nothing of the project.
package testutil
