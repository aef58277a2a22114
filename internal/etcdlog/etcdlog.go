// Package etcdlog keeps the etcd client of the embedded API servers from writing to standard error: it repeats, with the
// addresses of sockets, what the API server says and logs itself.
//
// The client makes its logger when its package is initialised, from an environment variable. This package is initialised
// before it: Go initialises packages in the order of their import paths where imports leave a choice (Go specification,
// "Program initialization"), and this one imports next to nothing. Import it for that effect alone. It imports nothing of
// the project.
package etcdlog

import (
	"os"
	"sync"
)

const variable = "ETCD_CLIENT_DEBUG"

// set says that the variable is ours, and not for the processes that this one starts.
var set = os.Getenv(variable) == "" && os.Setenv(variable, "fatal") == nil

// Restore takes the variable away again. Call it once the program runs.
var Restore = sync.OnceFunc(func() {
	if set {
		_ = os.Unsetenv(variable) // it would tell a child's etcd client to be silent, no more
	}
})
