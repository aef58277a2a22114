// Command gardenlite is a whole Gardener landscape in one process.
package main

import (
	"os"

	"github.com/gardenlite/gardenlite/internal/cli"
)

func main() { os.Exit(cli.Main()) }
