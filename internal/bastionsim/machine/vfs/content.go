package vfs

import "io/fs"

// ProgramMagic is the beginning of the file of a program that is built into the shell. The program's name follows.
const ProgramMagic = "\x7fELF\x02\x01\x01 gardenlite program "

type entry struct {
	name string
	mode fs.FileMode
	gid  uint32
	text string
}

// baseDirs are the directories of the image with mode 0755; baseModes are those with another one.
var baseDirs = []string{
	"/boot", "/dev/pts", "/etc", "/etc/containerd", "/etc/kubernetes", "/etc/ssh", "/etc/sysctl.d", "/etc/modules-load.d",
	"/etc/systemd/system/multi-user.target.wants", "/home", "/media", "/mnt", "/opt/bin", "/srv", "/usr/lib/systemd/system",
	"/usr/local/bin", "/usr/share/doc", "/var/cache", "/var/lib", "/var/log", "/var/spool",
}

var baseModes = map[string]fs.FileMode{
	"/dev/shm": 0o777 | fs.ModeSticky, "/etc/sudoers.d": 0o750, "/root": 0o700, "/run/lock": 0o777 | fs.ModeSticky,
	"/sys/class/net": 0o555, "/sys/fs/cgroup": 0o555, "/tmp": 0o777 | fs.ModeSticky, "/var/tmp": 0o777 | fs.ModeSticky,
}

var baseLinks = []entry{
	{name: "/bin", text: "usr/bin"}, {name: "/sbin", text: "usr/bin"}, {name: "/usr/sbin", text: "bin"}, {name: "/lib", text: "usr/lib"},
	{name: "/var/run", text: "/run"}, {name: "/var/lock", text: "/run/lock"}, {name: "/etc/mtab", text: "/proc/self/mounts"},
	{name: "/dev/fd", text: "/proc/self/fd"}, {name: "/usr/lib/os-release", text: "../../etc/os-release"},
}

// shadowGID is the group that may read /etc/shadow.
const shadowGID = 42

// idleUnit is a service that user data enables and restarts, and that does nothing on a simulated machine.
const idleUnit = "[Service]\nExecStart=/usr/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"

var baseFiles = []entry{
	{name: "/etc/os-release", mode: 0o644, text: `NAME="Gardenlite OS"
ID=gardenlite
VERSION="1.0"
VERSION_ID=1.0
PRETTY_NAME="Gardenlite OS 1.0 (simulated)"
HOME_URL="https://github.com/gardenlite/gardenlite"
`},
	{name: "/etc/passwd", mode: 0o644, text: `root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
sshd:x:100:65534::/run/sshd:/usr/sbin/nologin
systemd-network:x:101:101::/:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
`},
	{name: "/etc/group", mode: 0o644, text: `root:x:0:
daemon:x:1:
adm:x:4:
tty:x:5:
disk:x:6:
wheel:x:10:
sudo:x:27:
shadow:x:42:
users:x:100:
systemd-network:x:101:
systemd-journal:x:102:
docker:x:233:
nogroup:x:65534:
`},
	{name: "/etc/shadow", mode: 0o640, gid: shadowGID, text: `root:*:20454:0:99999:7:::
daemon:*:20454:0:99999:7:::
sshd:!:20454::::::
systemd-network:!:20454::::::
nobody:*:20454:0:99999:7:::
`},
	{name: "/etc/sudoers", mode: 0o440, text: `root ALL=(ALL:ALL) ALL
%sudo ALL=(ALL:ALL) NOPASSWD: ALL
%wheel ALL=(ALL:ALL) NOPASSWD: ALL
@includedir /etc/sudoers.d
`},
	{name: "/etc/fstab", mode: 0o644, text: "/dev/vda1 / ext4 defaults 0 1\n"},
	{name: "/etc/issue", mode: 0o644, text: "Gardenlite OS 1.0 \\n \\l\n"},
	{name: "/etc/motd", mode: 0o644, text: "This machine is simulated. There is no network and no program but the built-in ones.\n"},
	{name: "/etc/profile", mode: 0o644, text: "# Read by login shells.\n"},
	{name: "/etc/resolv.conf", mode: 0o644, text: "# No network, no name servers.\n"},
	{name: "/etc/shells", mode: 0o644, text: "/bin/sh\n/bin/bash\n"},
	{name: "/etc/ssh/sshd_config", mode: 0o600, text: "PasswordAuthentication no\nPermitRootLogin no\nSubsystem sftp internal-sftp\n"},
	{name: "/etc/containerd/config.toml", mode: 0o644, text: "version = 2\n"},
	{name: "/usr/lib/systemd/system/containerd.service", mode: 0o644,
		text: "[Service]\nExecStart=/usr/bin/containerd\n[Install]\nWantedBy=multi-user.target\n"},
	{name: "/usr/lib/systemd/system/docker.service", mode: 0o644, text: idleUnit},
	{name: "/usr/lib/systemd/system/systemd-journald.service", mode: 0o644, text: idleUnit},
	{name: "/usr/lib/systemd/system/systemd-networkd.service", mode: 0o644, text: idleUnit},
	{name: "/etc/skel/.bashrc", mode: 0o644, text: "# Read by interactive shells.\n"},
	{name: "/etc/skel/.profile", mode: 0o644, text: "# Read by login shells.\n"},
	{name: "/root/.bashrc", mode: 0o644, text: "# Read by interactive shells.\n"},
	{name: "/dev/vda", mode: fs.ModeDevice | 0o660, gid: 6}, {name: "/dev/vda1", mode: fs.ModeDevice | 0o660, gid: 6},
}

// Programs are the files in /usr/bin. All of them are built into the shell.
var Programs = []string{
	"[", "apt-get", "apt-mark", "base64", "basename", "bash", "cat", "chmod", "chown", "chpasswd", "clear", "containerd",
	"cp", "curl", "cut", "date", "df", "dirname",
	"echo", "env", "false", "find", "grep", "head", "hostname", "id", "ip", "iptables", "journalctl", "kill",
	"less", "ln", "logrotate", "ls", "mkdir", "mkfifo", "mktemp", "modprobe", "mv", "nc", "nohup", "nslookup", "passwd", "ping",
	"poweroff", "printf", "ps", "pwd", "readlink", "reboot", "rm", "scp", "sed", "seq", "sftp", "sh",
	"sha256sum", "shutdown", "sleep", "sort", "ssh", "stat", "su", "sudo", "sync", "sysctl", "systemctl",
	"tail", "tee", "test", "touch", "tr", "true", "uname", "update-ca-certificates", "uptime", "useradd", "wc", "wget", "which",
	"whoami", "yes", "zypper",
}
