// Package conditions has what the controllers of the garden and of seeds share for the conditions of objects: when a
// condition changes, when a failed check makes a condition False, and how conditions are written.
//
// It may import API types and controller-runtime. It guarantees that writing a condition of a Seed does not change the
// conditions of others, not even those that are written at the same time.
package conditions
