package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// mount is where a volume, or a part of one, is on this machine instead of in the container.
type mount struct{ in, folder string }

// mounts are those of a container, the longest paths first.
type mounts []mount

// mounts returns where the container's volumes are. Its sub-paths are checked, and made if they are missing.
func (c *container) mounts() (mounts, error) { return c.findMounts(checkSubPath) }

func (c *container) findMounts(check func(volume, subPath string) error) (mounts, error) {
	var all mounts
	for _, m := range c.spec.VolumeMounts {
		folder := c.pod.volumeDir(m.Name)
		subPath := m.SubPath
		if m.SubPathExpr != "" {
			values := map[string]string{}
			for _, v := range c.spec.Env {
				value, _, err := c.valueOf(c.pod.ctx, v, values)
				if err != nil {
					return nil, err
				}
				values[v.Name] = value
			}
			subPath = expansion.Expand(m.SubPathExpr, expansion.MappingFuncFor(values))
		}
		if subPath != "" {
			if err := check(folder, subPath); err != nil {
				return nil, fmt.Errorf("%w: subPath of volume %s: %w", errConfig, m.Name, err)
			}
			folder = filepath.Join(folder, filepath.FromSlash(subPath))
		}
		if in := path.Clean(m.MountPath); in != "/" {
			all = append(all, mount{in, folder})
		}
	}
	slices.SortStableFunc(all, func(a, b mount) int { return cmp.Compare(len(b.in), len(a.in)) })
	return all, nil
}

// checkSubPath refuses a path that leads out of a volume, by itself or by a symbolic link, and makes the folder if there is
// nothing.
func checkSubPath(volume, subPath string) error {
	root, err := os.OpenRoot(volume)
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = root.Stat(subPath)
	if errors.Is(err, fs.ErrNotExist) {
		return root.MkdirAll(subPath, 0o700)
	}
	return err
}

// exact returns the folder of what is mounted at a path.
func (m mounts) exact(at string) (string, bool) {
	i := slices.IndexFunc(m, func(m mount) bool { return m.in == at })
	if i < 0 {
		return "", false
	}
	return m[i].folder, true
}

// folder returns where a folder of the container is on this machine; instead of one that is in no volume, it is home.
func (m mounts) folder(in, home string) string {
	for _, m := range m {
		if rest, ok := strings.CutPrefix(path.Clean(in), m.in); ok && (rest == "" || rest[0] == '/') && filepath.IsLocal("."+rest) {
			return filepath.Join(m.folder, filepath.FromSlash(rest))
		}
	}
	return home
}

// rewrite replaces the paths of volumes in a text, where they stand as paths: not in the middle of another.
func (m mounts) rewrite(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		found := slices.IndexFunc(m, func(m mount) bool { return stands(text, i, m.in) })
		if found < 0 {
			out.WriteByte(text[i])
			i++
			continue
		}
		out.WriteString(m[found].folder)
		i += len(m[found].in)
	}
	return out.String()
}

// stands says whether a path begins at a place in a text, and ends as a whole name.
func stands(text string, at int, path string) bool {
	if !strings.HasPrefix(text[at:], path) || at > 0 && isPathByte(text[at-1]) {
		return false
	}
	end := at + len(path)
	return end == len(text) || text[end] == '/' || !isPathByte(text[end])
}

func isPathByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("/._-~+@%", b) >= 0
}

// mountsOf are the mounts of the first container that is a process and has a volume: files in it are written for that one. It
// makes and checks no sub-paths: volumes are written before there are others, and before init containers have run.
func (p *Pod) mountsOf(volume string) (mounts, error) {
	for _, c := range slices.Concat(p.main, p.init) {
		has := func(m corev1.VolumeMount) bool { return m.Name == volume }
		if c.isProcess() && slices.ContainsFunc(c.spec.VolumeMounts, has) {
			return c.findMounts(func(string, string) error { return nil })
		}
	}
	return nil, nil
}
