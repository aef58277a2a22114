// Package garbage sets how much garbage the process accumulates before it is collected. It imports nothing of the
// project.
package garbage
