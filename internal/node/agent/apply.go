package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/gardenlite/gardenlite/internal/node"
	"github.com/gardenlite/gardenlite/internal/plainyaml"
)

const (
	unitFolder  = "/etc/systemd/system/"
	defaultMode = 0o600
	// serviceSuffix ends the names of the units that machines have: no timers, sockets or paths.
	serviceSuffix = ".service"
	unitMode      = 0o644
)

// apply brings the machine into the state that the Secret describes: first files, then units, then the removal of files
// and units that are not in the configuration any more. The configuration is recorded as applied at the end, so that an
// interrupted apply is repeated as a whole.
func (a *Agent) apply(ctx context.Context, secret *corev1.Secret) error {
	osc, err := oscIn(secret)
	if err != nil {
		return err
	}
	before, err := a.lastApplied()
	if err != nil {
		return err
	}
	written, err := a.writeFiles(osc.Spec.Files)
	if err != nil {
		return err
	}
	if err := a.writeBootstrapKubeconfig(); err != nil {
		return err
	}
	if err := a.applyUnits(ctx, osc.Spec.Units, append(written, changedFiles(before, osc)...)); err != nil {
		return err
	}
	if err := a.removeObsolete(ctx, before, osc); err != nil {
		return err
	}
	if err := a.host.Files.WriteFile(node.PathLastApplied, secret.Data[node.DataKeyOSC], defaultMode); err != nil {
		return fmt.Errorf("writing down what was applied: %w", err)
	}
	return nil
}

// changedFiles returns the files that are not as they were applied before. An apply that was interrupted may have written them
// without restarting their units.
func changedFiles(before, osc *extensionsv1alpha1.OperatingSystemConfig) (paths []string) {
	if len(before.Spec.Files) == 0 { // nothing has been applied: the machine has booted with the files
		return nil
	}
	for _, file := range osc.Spec.Files {
		if !slices.ContainsFunc(before.Spec.Files, func(old extensionsv1alpha1.File) bool {
			return equality.Semantic.DeepEqual(old, file)
		}) {
			paths = append(paths, file.Path)
		}
	}
	return paths
}

// restoreFiles rewrites the files that differ from the Secret.
func (a *Agent) restoreFiles(secret *corev1.Secret) error {
	osc, err := oscIn(secret)
	if err != nil {
		return err
	}
	written, err := a.writeFiles(osc.Spec.Files)
	if len(written) > 0 {
		a.host.Logf("restored files that were changed: %s", strings.Join(written, ", "))
	}
	return err
}

func oscIn(secret *corev1.Secret) (*extensionsv1alpha1.OperatingSystemConfig, error) {
	content := secret.Data[node.DataKeyOSC]
	if len(content) == 0 {
		return nil, fmt.Errorf("the Secret %s/%s has nothing at %s", secret.Namespace, secret.Name, node.DataKeyOSC)
	}
	osc, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("reading the OperatingSystemConfig in Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return osc, nil
}

func parse(content []byte) (*extensionsv1alpha1.OperatingSystemConfig, error) {
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	if err := plainyaml.Unmarshal(content, osc); err != nil {
		return nil, err
	}
	return osc, node.Translate(osc)
}

func (a *Agent) lastApplied() (*extensionsv1alpha1.OperatingSystemConfig, error) {
	content, err := a.host.Files.ReadFile(node.PathLastApplied)
	if errors.Is(err, fs.ErrNotExist) {
		return &extensionsv1alpha1.OperatingSystemConfig{}, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading what was applied before: %w", err)
	}
	osc, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("reading what was applied before (%s): %w", node.PathLastApplied, err)
	}
	return osc, nil
}

// writeFiles writes the files that are missing or differ, and returns their paths.
func (a *Agent) writeFiles(files []extensionsv1alpha1.File) (written []string, err error) {
	for i := range files {
		file := &files[i]
		if ptr.Deref(file.HostName, a.host.Hostname) != a.host.Hostname || file.Content.Inline == nil {
			continue // for another node, or copied from an image, which is not supported
		}
		data, err := node.Content(*file)
		if err != nil {
			return nil, err
		}
		changed, err := a.write(file.Path, data, fs.FileMode(ptr.Deref(file.Permissions, defaultMode)))
		if err != nil {
			return nil, err
		}
		if changed {
			written = append(written, file.Path)
		}
	}
	return written, nil
}

// write writes a file if its content differs, and reports whether it did.
func (a *Agent) write(path string, data []byte, mode fs.FileMode) (bool, error) {
	if now, err := a.host.Files.ReadFile(path); err == nil && bytes.Equal(now, data) {
		return false, nil
	}
	if err := a.host.Files.WriteFile(path, data, mode); err != nil {
		return false, fmt.Errorf("writing the file %s: %w", path, err)
	}
	return true, nil
}

// writeBootstrapKubeconfig writes the kubeconfig with which the kubelet requests its certificate, if it has none.
func (a *Agent) writeBootstrapKubeconfig() error {
	if _, err := a.host.Files.ReadFile(node.PathKubeletClient); err == nil {
		return nil
	}
	config, err := a.config()
	if err != nil {
		return err
	}
	token, err := a.token()
	if err != nil {
		return err
	}
	data, err := node.KubeconfigWithToken(config.APIServer, []byte(config.CA), token)
	if err != nil {
		return err
	}
	_, err = a.write(node.PathKubeconfigBootstrap, data, defaultMode)
	return err
}

func (a *Agent) token() (string, error) {
	token, err := a.host.Files.ReadFile(node.PathBootstrapToken)
	if err != nil {
		return "", fmt.Errorf("reading the bootstrap token: %w", err)
	}
	return strings.TrimSpace(string(token)), nil
}

// applyUnits writes the units, then starts, restarts or stops them, also if one of them fails.
func (a *Agent) applyUnits(ctx context.Context, units []extensionsv1alpha1.Unit, written []string) error {
	reload := false
	for i := range units {
		unit := &units[i]
		ofUnit, err := a.writeUnit(unit)
		if err != nil {
			return err
		}
		reload = reload || ofUnit
		if service, ok := strings.CutSuffix(unit.Name, ".path"); ok {
			if triggers(unit, written) {
				a.pending[service+serviceSuffix] = true
			}
			continue
		}
		if ofUnit || slices.ContainsFunc(unit.FilePaths, func(path string) bool { return slices.Contains(written, path) }) {
			a.pending[unit.Name] = true
		}
	}
	if reload {
		if err := a.host.Units.DaemonReload(ctx); err != nil {
			return fmt.Errorf("reloading the units: %w", err)
		}
	}
	var all []error
	for i := range units {
		name := units[i].Name
		if !strings.HasSuffix(name, serviceSuffix) {
			continue
		}
		if err := a.run(ctx, &units[i], a.pending[name]); err != nil {
			all = append(all, fmt.Errorf("the unit %s: %w", name, err))
			continue
		}
		delete(a.pending, name)
	}
	return errors.Join(all...)
}

// triggers reports whether a path unit starts its service because of files that were written. The machine has no path units.
func triggers(unit *extensionsv1alpha1.Unit, written []string) bool {
	for line := range strings.Lines(ptr.Deref(unit.Content, "")) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "PathChanged=")
		if ok && slices.Contains(written, path) {
			return true
		}
	}
	return false
}

// writeUnit writes the files of a unit, and reports whether any of them differed.
func (a *Agent) writeUnit(unit *extensionsv1alpha1.Unit) (changed bool, err error) {
	if unit.Content != nil {
		if changed, err = a.write(unitFolder+unit.Name, []byte(*unit.Content), unitMode); err != nil {
			return false, err
		}
	}
	for _, dropIn := range unit.DropIns {
		wrote, err := a.write(dropInPath(unit.Name, dropIn.Name), []byte(dropIn.Content), unitMode)
		if err != nil {
			return false, err
		}
		changed = changed || wrote
	}
	return changed, nil
}

func dropInPath(unit, name string) string { return unitFolder + unit + ".d/" + name }

// run enables or disables a unit, and starts, restarts or stops it. It leaves the agent's own unit running, because the
// agent would wait for its own end.
func (a *Agent) run(ctx context.Context, unit *extensionsv1alpha1.Unit, changed bool) error {
	if !ptr.Deref(unit.Enable, true) {
		if err := a.host.Units.Disable(ctx, unit.Name); err != nil {
			return fmt.Errorf("disabling it: %w", err)
		}
	} else if unit.Enable != nil && (changed || !a.host.Units.IsActive(unit.Name)) {
		if err := a.host.Units.Enable(ctx, unit.Name); err != nil {
			return fmt.Errorf("enabling it: %w", err)
		}
	}
	active := a.host.Units.IsActive(unit.Name)
	switch command := ptr.Deref(unit.Command, extensionsv1alpha1.CommandStart); {
	case unit.Name == node.UnitNodeAgent:
		return nil
	case command == extensionsv1alpha1.CommandStop:
		if active {
			return a.host.Units.Stop(ctx, unit.Name)
		}
	case !active:
		return a.host.Units.Start(ctx, unit.Name)
	case changed:
		return a.host.Units.Restart(ctx, unit.Name)
	}
	return nil
}

// removeObsolete removes files and units that were applied before and are not in the configuration any more.
func (a *Agent) removeObsolete(ctx context.Context, before, now *extensionsv1alpha1.OperatingSystemConfig) error {
	keep := paths(now)
	for _, unit := range before.Spec.Units {
		gone := !slices.ContainsFunc(now.Spec.Units, func(u extensionsv1alpha1.Unit) bool { return u.Name == unit.Name })
		if !gone || unit.Name == node.UnitNodeAgent {
			continue
		}
		if err := errors.Join(a.host.Units.Stop(ctx, unit.Name), a.host.Units.Disable(ctx, unit.Name)); err != nil {
			return fmt.Errorf("stopping the unit %s, which has gone: %w", unit.Name, err)
		}
	}
	reload := false
	for path := range paths(before) {
		if keep[path] {
			continue
		}
		if err := a.host.Files.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the file %s, which has gone: %w", path, err)
		}
		reload = reload || strings.HasPrefix(path, unitFolder)
	}
	if reload {
		if err := a.host.Units.DaemonReload(ctx); err != nil {
			return fmt.Errorf("reloading the units: %w", err)
		}
	}
	return nil
}

// paths returns the paths of all files of a configuration, including those of its units.
func paths(osc *extensionsv1alpha1.OperatingSystemConfig) map[string]bool {
	all := map[string]bool{}
	for _, file := range osc.Spec.Files {
		all[file.Path] = true
	}
	for _, unit := range osc.Spec.Units {
		if unit.Content != nil || unit.Name == node.UnitNodeAgent {
			all[unitFolder+unit.Name] = true
		}
		for _, dropIn := range unit.DropIns {
			all[dropInPath(unit.Name, dropIn.Name)] = true
		}
	}
	return all
}
