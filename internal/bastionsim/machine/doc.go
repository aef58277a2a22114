// Package machine simulates a machine of a cloud: a disk (vfs), users, cloud-init (cloudinit), units in the way of
// systemd, an SSH server (sshd), sessions and scripts in a sandbox (shell), and the transfer of files (sftp). It may
// import its subpackages, internal/bastionspec and internal/fsutil.
//
// It promises:
//
//   - A machine reads, writes and runs nothing of the host, but for the files in its own folder, whose names it chooses
//     itself.
//   - The folder is the machine. A machine that is opened again has its disk, its host key and its enabled units, and does not
//     run its user data again; after a kill in the middle of the first boot it does.
//   - Users are those of /etc/passwd, /etc/shadow and /etc/group, which are read at each lookup: a useradd in a script takes
//     effect at once.
//   - Everything that runs on a machine shares MaxMemory. A unit that was ended by a limit is not started again.
//   - Run returns when everything that it started has ended: programs, scripts, sessions.
//   - A machine that runs two programs and an SSH server costs about 100 KB and a goroutine for each of them.
//
// Programs (Config.Programs) are Go functions of this process that a unit's ExecStart names by path. They are trusted.
// Everything else that a unit runs is run by the shell, in the sandbox.
package machine
