package machine

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/gardenlite/gardenlite/internal/machine/shell"
	"github.com/gardenlite/gardenlite/internal/machine/users"
	"github.com/gardenlite/gardenlite/internal/machine/vfs"
)

var imageDirs = []string{"/boot", "/dev", "/etc/ssh", "/etc/sudoers.d", "/etc/systemd/system", "/etc/kubernetes", "/home", "/opt/bin", "/proc", "/root",
	"/run", "/srv", "/sys", "/usr/bin", "/usr/local/bin", "/usr/lib", "/usr/share", "/var/lib/kubelet", "/var/lib/cloud/instance", "/var/log"}

// image writes the base image.
func (m *Machine) image() error {
	v := m.FS()
	for _, dir := range imageDirs {
		if err := v.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		if err := v.Mkdir(dir, 0o777); err != nil {
			return err
		}
		if err := v.Chmod(dir, 0o777|fs.ModeSticky); err != nil {
			return err
		}
	}
	if err := v.Chmod("/root", 0o700); err != nil {
		return err
	}
	for from, to := range map[string]string{"/bin": "usr/bin", "/sbin": "usr/bin", "/lib": "usr/lib", "/usr/sbin": "bin", "/var/run": "/run"} {
		if err := v.Symlink(to, from); err != nil {
			return err
		}
	}
	for name, device := range map[string]vfs.Device{"null": vfs.DeviceNull, "zero": vfs.DeviceZero, "full": vfs.DeviceFull, "random": vfs.DeviceRandom, "urandom": vfs.DeviceRandom, "tty": vfs.DeviceTTY} {
		if err := v.Mkdev("/dev/"+name, device, 0o666); err != nil {
			return err
		}
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(m.commands)), []string{"sh", "bash"}) {
		if name == "kubelet" && m.cfg.KubeletVersion == "" {
			continue
		}
		if err := v.WriteFile("/usr/bin/"+name, shell.Program(name), 0o755); err != nil {
			return err
		}
	}
	for name, text := range m.imageFiles() {
		if err := v.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for _, name := range []string{"/etc/shadow", "/etc/sudoers"} {
		if err := v.Chmod(name, 0o440); err != nil {
			return err
		}
	}
	return m.defaultUser()
}

func (m *Machine) imageFiles() map[string]string {
	return map[string]string{
		"/etc/passwd":     "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"/etc/group":      "root:x:0:\ndaemon:x:1:\nadm:x:4:\nsudo:x:27:\nwheel:x:28:\ndocker:x:999:\nnogroup:x:65534:\n",
		"/etc/shadow":     "root:*:::::::\n",
		"/etc/sudoers":    "root ALL=(ALL:ALL) ALL\n",
		"/etc/hostname":   m.cfg.Hostname + "\n",
		"/etc/hosts":      "127.0.0.1 localhost\n127.0.1.1 " + m.cfg.Hostname + "\n",
		"/etc/os-release": "NAME=\"Garden Linux\"\nID=gardenlinux\nVERSION_ID=\"1877\"\nPRETTY_NAME=\"Garden Linux (simulated by gardenlite)\"\n",
		"/etc/shells":     "/bin/sh\n/bin/bash\n",
		"/proc/version":   "Linux version 6.6.0-gardenlite\n",
		"/proc/cpuinfo":   "processor\t: 0\nmodel name\t: simulated\n\nprocessor\t: 1\nmodel name\t: simulated\n",
		"/proc/meminfo":   "MemTotal:        4194304 kB\nMemFree:         3145728 kB\n",
	}
}

func (m *Machine) defaultUser() error {
	if m.cfg.User == "" {
		return nil
	}
	u, err := users.Add(m.FS(), users.User{Name: m.cfg.User, UID: -1, GID: -1, Home: "/home/" + m.cfg.User, Shell: "/bin/bash"})
	if err != nil {
		return fmt.Errorf("adding the image's user: %w", err)
	}
	if err := m.FS().MkdirAll(u.Home, 0o755); err != nil {
		return err
	}
	if err := m.FS().Chown(u.Home, u.UID, u.GID, true); err != nil {
		return err
	}
	return m.FS().WriteFile("/etc/sudoers.d/90-"+u.Name, []byte(u.Name+" ALL=(ALL) NOPASSWD:ALL\n"), 0o440)
}
