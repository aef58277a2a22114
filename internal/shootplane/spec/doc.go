// Package spec holds the names by which a gardenlet describes the control plane of a shoot, and by which the runner in the
// seed reads it: names of objects, keys of the Secret, labels and annotations. It is a leaf: constants and helpers
// without state, so that both sides can import it and neither needs the other.
package spec
