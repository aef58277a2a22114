// Package shell runs scripts, command lines and interactive sessions of a simulated machine.
//
// It reads the language of bash with mvdan.cc/sh/v3/syntax and executes it itself, not with that module's interpreter,
// which a script can make end the whole process (docs/architecture.md has the scripts). Here a script sees a vfs.View,
// the environment that it was given and the commands of the tables in this package. Nothing starts a process, opens a
// socket or reads a file of the host, and escape_test.go checks that no such package is imported.
//
// Package expand of that module is used only for what can be bounded before the call: braces, escape sequences,
// arithmetic operators, fields of lines, names of files. The rest of it multiplies strings and compiles patterns of any
// length.
//
// Every run has Limits. Each statement, expansion, read and write checks them, so that a run ends soon after its time
// is over or its context is done. Then all of its goroutines have ended, except for one that may wait for the caller's
// stdin.
//
// Layers: run.go (limits) and stream.go (files and pipes) are below shell.go (the state of a shell), which expansions
// (expand.go, param.go, arith.go, glob.go), statements (exec.go, call.go, redirect.go) and builtins work on. The
// programs of the machine are in cmd_*.go, one file a family, each a function of Process.
//
// The package imports internal/bastionsim/machine/vfs of the project and nothing else.
package shell
