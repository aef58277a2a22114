// Package conditions is what controllers of the garden and of seeds have in common when they say something of an object in
// its conditions: when one changes, when a failure is one at last, and how it is written.
//
// It may import API types and controller-runtime. It promises that writing a condition of a Seed leaves those of others
// alone, also those that are written at the same moment.
package conditions
