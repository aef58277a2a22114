package seedhost

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/landscape/statedir"
	"github.com/gardenlite/gardenlite/internal/node/programs"
)

// openCloud opens the cloud that all seeds of the process share. It is closed after the components of the seeds.
func (h *Host) openCloud() error {
	dir := filepath.Join(h.cfg.Dir, statedir.CloudFolder)
	if h.cfg.Datastore == datastore.Memory { // no Machine object has survived the restart
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("deleting the machines of the last run: %w", err)
		}
	}
	c, err := cloud.Open(cloud.Config{Dir: dir, Clock: h.cfg.Clock, Log: klog.Background().WithName("cloud"),
		Programs: programs.New(h.cfg.Clock, h.processes)})
	if err != nil {
		return fmt.Errorf("opening the simulated cloud: %w", err)
	}
	h.cloud = c
	return h.processes.CleanUp(func(node, _ string) bool { return !strings.HasPrefix(node, statedir.SeedPrefix) && !c.HasHost(node) })
}
