// Command wordpress is the controller of the sample namespace stack: it serves the WordPressInstances of $NAMESPACE, each with a
// database of its own, as pages on a port of 127.0.0.1.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gardenlite/gardenlite/examples/stacks/internal/sample"
)

func main() {
	version := flag.String("version", "", "the version of the stack: 0.1, or 0.2, which has themes")
	flag.Parse()
	if err := run(*version, os.Getenv("NAMESPACE")); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(version, namespace string) error {
	if namespace == "" || version != "0.1" && version != "0.2" {
		return errors.New("set the variable NAMESPACE, and --version to 0.1 or 0.2")
	}
	sites, err := newSites(version)
	if err != nil {
		return err
	}
	return sample.Run(namespace, func(m manager.Manager) error {
		if err := m.Add(sites); err != nil {
			return err
		}
		return (&reconciler{sites: sites}).addToManager(m)
	})
}
