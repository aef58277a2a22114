// Package schedule says when a Shoot is hibernated and woken up, and when its credentials are rotated. It imports
// nothing of the project.
package schedule
