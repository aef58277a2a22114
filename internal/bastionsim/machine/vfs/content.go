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

var baseDirs = []entry{
	{name: "/boot", mode: 0o755}, {name: "/dev/shm", mode: 0o777 | fs.ModeSticky}, {name: "/dev/pts", mode: 0o755},
	{name: "/etc", mode: 0o755}, {name: "/etc/containerd", mode: 0o755}, {name: "/etc/kubernetes", mode: 0o755},
	{name: "/etc/ssh", mode: 0o755}, {name: "/etc/sudoers.d", mode: 0o750}, {name: "/etc/sysctl.d", mode: 0o755},
	{name: "/etc/systemd/system/multi-user.target.wants", mode: 0o755}, {name: "/etc/modules-load.d", mode: 0o755},
	{name: "/home", mode: 0o755}, {name: "/media", mode: 0o755}, {name: "/mnt", mode: 0o755}, {name: "/opt/bin", mode: 0o755},
	{name: "/root", mode: 0o700}, {name: "/run/lock", mode: 0o777 | fs.ModeSticky}, {name: "/srv", mode: 0o755},
	{name: "/sys/fs/cgroup", mode: 0o555}, {name: "/sys/class/net", mode: 0o555}, {name: "/tmp", mode: 0o777 | fs.ModeSticky},
	{name: "/usr/lib/systemd/system", mode: 0o755}, {name: "/usr/local/bin", mode: 0o755}, {name: "/usr/share/doc", mode: 0o755},
	{name: "/var/cache", mode: 0o755}, {name: "/var/lib", mode: 0o755}, {name: "/var/log", mode: 0o755},
	{name: "/var/spool", mode: 0o755}, {name: "/var/tmp", mode: 0o777 | fs.ModeSticky},
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
	"less", "ln", "ls", "mkdir", "mkfifo", "mktemp", "modprobe", "mv", "nc", "nohup", "nslookup", "passwd", "ping",
	"poweroff", "printf", "ps", "pwd", "readlink", "reboot", "rm", "scp", "sed", "seq", "sftp", "sh",
	"sha256sum", "shutdown", "sleep", "sort", "ssh", "stat", "su", "sudo", "sync", "sysctl", "systemctl",
	"tail", "tee", "test", "touch", "tr", "true", "uname", "uptime", "useradd", "wc", "wget", "which",
	"whoami", "yes", "zypper",
}
