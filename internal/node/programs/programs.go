// Package programs provides gardener-node-agent and the kubelet as programs of simulated machines. It may import the
// packages of a node, and machines.
package programs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	nodeagentv1alpha1 "github.com/gardener/gardener/pkg/apis/config/nodeagent/v1alpha1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gardenlite/gardenlite/internal/bastionsim/machine"
	"github.com/gardenlite/gardenlite/internal/bastionsim/machine/vfs"
	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/node/agent"
	"github.com/gardenlite/gardenlite/internal/node/host"
	"github.com/gardenlite/gardenlite/internal/node/kubelet"
	"github.com/gardenlite/gardenlite/internal/node/process"
)

// New returns the programs of all nodes of a process, by their paths on a machine. The programs of one machine share a
// connection. Without a runner, all Pods are simulated. apiServer returns the URL of the API server of a network, "" if none runs.
func New(runner *process.Runner, apiServer func(network string) string) map[string]machine.Program {
	return map[string]machine.Program{
		node.PathInitScript: func(ctx context.Context, m *machine.Machine, _ []string) error {
			return initialize(ctx, m.FS(), hostOf(ctx, m, apiServer))
		},
		node.PathNodeAgent: func(ctx context.Context, m *machine.Machine, _ []string) error {
			return agent.Run(ctx, hostOf(ctx, m, apiServer))
		},
		node.PathKubelet: func(ctx context.Context, m *machine.Machine, _ []string) error {
			return kubelet.Run(ctx, hostOf(ctx, m, apiServer), runner)
		},
	}
}

// initialize starts gardener-node-agent on a machine of Gardener's gardenlet. The script there downloads the program, which every
// machine here has. Any extension may have written the user data: the machine has the files of the OperatingSystemConfig
// as they are.
func initialize(ctx context.Context, disk *vfs.FS, h host.Host) error {
	if err := configure(disk, h.Files); err != nil {
		return fmt.Errorf("writing the configuration of gardener-node-agent: %w", err)
	}
	if err := h.Files.WriteFile("/etc/systemd/system/"+node.UnitNodeAgent, []byte(node.NodeAgentUnit()), 0o644); err != nil {
		return fmt.Errorf("writing the unit of gardener-node-agent: %w", err)
	}
	if err := h.Units.DaemonReload(ctx); err != nil {
		return fmt.Errorf("reloading the units: %w", err)
	}
	return errors.Join(h.Units.Enable(ctx, node.UnitNodeAgent), h.Units.Start(ctx, node.UnitNodeAgent), h.Units.Disable(ctx, node.UnitNodeInit))
}

// configure writes the configuration of gardener-node-agent from Gardener's.
func configure(disk *vfs.FS, files host.Files) error {
	entries, err := disk.As(vfs.Root).ReadDir(nodeagentv1alpha1.BaseDir)
	if err != nil {
		return err
	}
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		file := extensionsv1alpha1.File{Path: path.Join(nodeagentv1alpha1.BaseDir, entry.Name())}
		data, err := disk.ReadFile(file.Path)
		if err != nil {
			return err
		}
		file.Content.Inline = &extensionsv1alpha1.FileContentInline{Data: string(data)}
		osc.Spec.Files = append(osc.Spec.Files, file)
	}
	before := len(osc.Spec.Files)
	if err := node.Translate(osc); err != nil {
		return err
	}
	for _, added := range osc.Spec.Files[before:] {
		data, err := node.Content(added)
		if err != nil {
			return err
		}
		if err := files.WriteFile(added.Path, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// hostOf returns the interface of the programs to a machine.
func hostOf(ctx context.Context, m *machine.Machine, apiServer func(network string) string) host.Host {
	metadata := m.Metadata()
	if metadata.Zone == "" {
		if zone, err := m.FS().ReadFile(node.PathZone); err == nil {
			metadata.Zone = strings.TrimSpace(string(zone))
		}
	}
	var capacity corev1.ResourceList
	_ = json.Unmarshal([]byte(metadata.Tags[machine.TagCapacity]), &capacity) // without the tag, the kubelet's configuration has it
	h := host.Host{
		Hostname: m.Hostname(), Addresses: m.Addresses(), Files: files{m.FS()}, Units: m.Units(), Clock: m.Clock(),
		Log: m.Log(), Journal: machine.Journal(ctx), Listen: m.Listen,
		Metadata: host.Metadata{
			ProviderID: metadata.ProviderID, Cluster: metadata.Network, Zone: metadata.Zone, InstanceType: metadata.InstanceType,
			Capacity: capacity},
	}
	if apiServer != nil {
		h.APIServer = func() string { return apiServer(metadata.Network) }
	}
	return h
}

// folderMode is the mode of folders that WriteFile creates.
const folderMode = 0o755

// files is the file system of a machine, as root sees it.
type files struct{ fs *vfs.FS }

func (f files) ReadFile(name string) ([]byte, error) { return f.fs.ReadFile(name) }

// WriteFile writes a file, and makes the folders that are missing.
func (f files) WriteFile(name string, data []byte, mode fs.FileMode) error {
	if err := f.fs.MkdirAll(path.Dir(name), folderMode); err != nil {
		return err
	}
	return f.fs.WriteFile(name, data, mode)
}

func (f files) Sync() error { return f.fs.Sync() }

// Remove removes a file. A missing file is no error.
func (f files) Remove(name string) error {
	if err := f.fs.As(vfs.Root).Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
