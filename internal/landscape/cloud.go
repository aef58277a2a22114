package landscape

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/bastionsim/cloud"
	"github.com/gardenlite/gardenlite/internal/datastore"
	"github.com/gardenlite/gardenlite/internal/node/programs"
)

// cloudFolder has the simulated cloud's networks and instances.
const cloudFolder = "cloud"

// openCloud opens the cloud that all seeds of the process share. It closes after the seeds' components.
func (l *Landscape) openCloud() error {
	dir := filepath.Join(l.cfg.Dir, cloudFolder)
	if l.cfg.Datastore == datastore.Memory { // no Machine object has survived the restart
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("deleting the machines of the last run: %w", err)
		}
	}
	c, err := cloud.Open(cloud.Config{Dir: dir, Clock: l.cfg.Clock, Log: klog.Background().WithName("cloud"),
		Programs: programs.New(l.cfg.Clock, l.processes)})
	if err != nil {
		return fmt.Errorf("opening the simulated cloud: %w", err)
	}
	l.cloud = c
	l.onClose(c.Close)
	return l.processes.CleanUp(func(node, _ string) bool { return !strings.HasPrefix(node, seedPrefix) && !c.HasHost(node) })
}
