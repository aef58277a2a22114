// Package testutil is for tests and imported by nothing else: polling with a deadline, goroutines that a test leaves, a
// process of its own for a test, and seeds of random numbers. It imports nothing of the project.
package testutil
