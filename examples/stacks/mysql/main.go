// Command mysql is the controller of the sample cluster stack: it serves the MySQLInstance claims of all namespaces. Its servers
// are elsewhere: it records their addresses, and starts none.
package main

import (
	"fmt"
	"os"

	"github.com/gardenlite/gardenlite/examples/stacks/internal/sample"
)

func main() {
	if err := sample.Run("", (&reconciler{}).addToManager); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
