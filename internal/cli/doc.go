// Package cli is the command line: each command parses, calls one function of landscape, and prints. Human output goes
// to standard output, messages and progress to standard error, logs to the landscape's log file.
package cli
