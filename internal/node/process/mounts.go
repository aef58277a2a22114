package process

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mount is a mount path in the container, and what is mounted there: the folder of the volume, or of a part of it,
// on this machine, or the file for the termination message.
type mount struct{ in, folder string }

// mounts are the mounts of a container, the longest paths first.
type mounts []mount

// mounts returns the mounts of the container, and that of the file for its termination message. It checks the
// sub-paths, and creates those that are missing.
func (c *container) mounts() (mounts, error) { return c.findMounts(checkSubPath) }

func (c *container) findMounts(check func(volume, subPath string) error) (mounts, error) {
	var all mounts
	var values map[string]string
	for _, m := range c.spec.VolumeMounts {
		folder := c.pod.volumeDir(m.Name)
		subPath := m.SubPath
		if m.SubPathExpr != "" {
			if values == nil {
				variables, err := c.variables(c.pod.ctx)
				if err != nil {
					return nil, err
				}
				values = map[string]string{}
				for _, v := range variables {
					values[v.Name] = v.Value
				}
			}
			var err error
			if subPath, err = expand(m.SubPathExpr, values); err != nil {
				return nil, fmt.Errorf("%w: subPathExpr of volume %s: %w", errConfig, m.Name, err)
			}
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
	if in := path.Clean("/" + c.spec.TerminationMessagePath); in != "/" { // last: a volume with the same path counts
		all = append(all, mount{in, filepath.Join(c.homeDir(), messageFile)})
	}
	slices.SortStableFunc(all, func(a, b mount) int { return cmp.Compare(len(b.in), len(a.in)) })
	return all, nil
}

// checkSubPath refuses a path that leads out of a volume, also by a symbolic link, and creates a missing folder.
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

// exact returns the folder that is mounted at a path.
func (m mounts) exact(at string) (string, bool) {
	i := slices.IndexFunc(m, func(m mount) bool { return m.in == at })
	if i < 0 {
		return "", false
	}
	return m[i].folder, true
}

// find returns the mount with a path of the container, and the rest of the path in it: empty, or with a leading slash.
func (m mounts) find(in string) (found mount, rest string, ok bool) {
	for _, m := range m {
		rest, ok := strings.CutPrefix(path.Clean(in), m.in)
		if ok && (rest == "" || rest[0] == '/') && filepath.IsLocal("."+rest) {
			return m, rest, true
		}
	}
	return mount{}, "", false
}

// folder returns the folder on this machine for a folder of the container, and another one if it is in no volume.
func (m mounts) folder(in, other string) string {
	if found, rest, ok := m.find(in); ok {
		return filepath.Join(found.folder, filepath.FromSlash(rest))
	}
	return other
}

// have reports whether a path of the container is in one of its mounts, and does not lead out of it by a symbolic link.
// There need not be a file.
func (m mounts) have(file string) bool {
	found, rest, ok := m.find(file)
	if !ok || rest == "" {
		return ok
	}
	root, err := os.OpenRoot(found.folder)
	if err != nil {
		return false
	}
	defer root.Close()
	_, err = root.Stat(filepath.FromSlash(rest[1:]))
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// rewrite replaces the mount paths in a text by the folders on this machine, but not in the middle of another path, or
// where .. follows: the landscape's own files are in the folders above. It subtracts the size of the result from what
// is left, and fails if that is too little: folders may be much longer than paths.
func (m mounts) rewrite(text string, left *int) (string, error) {
	var out strings.Builder
	for i := 0; i < len(text); {
		if out.Len() > *left {
			break
		}
		found := slices.IndexFunc(m, func(m mount) bool { return hasPathAt(text, i, m.in) })
		if found < 0 || leadsUpwards(text[i+len(m[found].in):]) {
			out.WriteByte(text[i])
			i++
			continue
		}
		out.WriteString(m[found].folder)
		i += len(m[found].in)
	}
	if *left -= out.Len(); *left < 0 {
		return "", fmt.Errorf("%w: with the folders of its mounts, it is too large", errConfig)
	}
	return out.String(), nil
}

// hasPathAt reports whether a path begins at a position in a text, and ends with a whole path element.
func hasPathAt(text string, at int, path string) bool {
	if !strings.HasPrefix(text[at:], path) || at > 0 && isPathByte(text[at-1]) {
		return false
	}
	end := at + len(path)
	return end == len(text) || text[end] == '/' || !isPathByte(text[end])
}

// upwards matches a path element that leads to the folder above.
var upwards = regexp.MustCompile(`/\.\.($|[^A-Za-z0-9._-])`)

// leadsUpwards reports whether a text that follows a path may lead upwards from it. Where a path ends is not known.
func leadsUpwards(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	return upwards.MatchString(line)
}

func isPathByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("/._-~+@%", b) >= 0
}

// mountsOf returns the mounts of the first container that is a process and mounts the volume: files in the volume are
// written for this container. It neither creates nor checks sub-paths, because volumes are written before other volumes
// exist, and before init containers have run.
func (p *Pod) mountsOf(volume string) (mounts, error) {
	for _, c := range slices.Concat(p.main, p.init) {
		has := func(m corev1.VolumeMount) bool { return m.Name == volume }
		if c.isProcess() && slices.ContainsFunc(c.spec.VolumeMounts, has) {
			return c.findMounts(func(string, string) error { return nil })
		}
	}
	return nil, nil
}
