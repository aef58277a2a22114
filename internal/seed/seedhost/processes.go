package seedhost

import (
	"path/filepath"

	"k8s.io/klog/v2"

	"github.com/gardenlite/gardenlite/internal/landscape/statedir"
	"github.com/gardenlite/gardenlite/internal/node/process"
)

// startProcesses starts what runs containers as processes. Those that an earlier process has left behind are ended.
func (h *Host) startProcesses() (err error) {
	if h.images, err = process.OpenImages(filepath.Join(h.cfg.Dir, statedir.ImagesFile), h.cfg.Images); err != nil {
		return err
	}
	h.processes, err = process.Start(process.Config{
		Dir: filepath.Join(h.cfg.Dir, statedir.ProcessesFolder), Images: h.images, Clock: h.cfg.Clock, Log: klog.Background().WithName(statedir.ProcessesFolder),
	})
	if err != nil {
		return err
	}
	return nil
}
