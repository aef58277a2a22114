// Package machine simulates a machine of a cloud: a disk (vfs), users, cloud-init (cloudinit), units in the way of
// systemd, an SSH server (sshd), sessions and scripts in a sandbox (shell), and the transfer of files (sftp). It may
// import what is below it and internal/fsutil.
//
// It promises:
//
//   - What happens on a machine stays there: nothing of the host is read, written or run, but the files of the machine's own
//     folder, which the machine names itself.
//   - The folder is the machine. A machine that is opened again has its disk, its host key and its enabled units, and does not
//     run its user data again; after a kill in the middle of the first boot it does.
//   - Users are those of /etc/passwd, /etc/shadow and /etc/group, read when they are asked for: a useradd in a script counts at
//     once.
//   - What runs on it has MaxMemory together. A unit that was ended by a limit is not started again.
//   - Run returns when everything that it started has ended: programs, scripts, sessions.
//   - A machine that runs two programs and an SSH server costs about 100 KB and a goroutine for each of them.
//
// Programs (Config.Programs) are Go functions of this process that a unit's ExecStart names by path. They are trusted; all
// else that a unit runs is run by the shell, in the sandbox.
package machine
