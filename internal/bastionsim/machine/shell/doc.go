// Package shell runs scripts, command lines and interactive sessions of a simulated machine.
//
// It reads the language of bash with mvdan.cc/sh/v3/syntax and executes it itself, not with that module's interpreter:
// the interpreter asks the host for named pipes, users, process numbers and files that no handler sees, starts goroutines
// in which a panic would end the whole process, and has no limits on memory and depth. Here a script sees a vfs.View, the
// environment that it was given and the commands of the tables in this package. There is nothing that starts a process,
// opens a socket or reads a file of the host, and escape_test.go checks that no such package is imported.
//
// Of that module's other packages, braces come from expand and patterns from pattern, whose work and results can be limited
// before or while they are made. The rest of expand cannot be limited: it multiplies strings and compiles patterns of any
// length before its caller sees them.
//
// The first error of an expansion is kept in the shell, and nothing more is expanded or assigned until the command that it
// belongs to has told it (shell.failed).
//
// Every run has Limits. Each statement, expansion, read and write looks at them, so that a run ends soon after its time is
// over or its context is done; then all of its goroutines are gone, but for one that waits in the caller's own stdin.
//
// What is typed goes through keys.go before it comes to the line editor, which would wait for good in the middle of a key.
//
// Layers: run.go (limits) and stream.go (files and pipes) are below shell.go (the state of a shell), which expansions
// (expand.go, param.go, arith.go, glob.go), statements (exec.go, call.go, redirect.go) and builtins work on. The
// programs of the machine are in cmd_*.go, one file a family, and use nothing but Process.
//
// The package imports internal/bastionsim/machine/vfs of the project and nothing else.
package shell
