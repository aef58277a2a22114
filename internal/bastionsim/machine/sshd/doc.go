// Package sshd is the SSH server of a simulated machine, on golang.org/x/crypto/ssh. It imports nothing of the project: what
// it knows of the machine it asks through Host.
//
// It promises:
//
//   - Only public keys open it, those in the authorized_keys file of the user, under the rules of OpenSSH's StrictModes: the
//     file and the folders up to the home belong to the user or root, and no other user can write to them. A user without a
//     home, without that file, locked or unknown is refused, all in the same way. A line of the file with an option that is
//     not supported here opens nothing, for the option may have been meant to restrict.
//   - Only algorithms of today (algorithms.go).
//   - Every channel and every request is handled or refused explicitly: exec, shell, pty-req, env, window-change, signal
//     and the Host's subsystems of a session, direct-tcpip where the machine forwards. Remote forwarding, sockets, agents, X11
//     and other subsystems are refused.
//   - Everything has a limit (limits.go), before authentication and after.
//   - No password, key, command or byte of a session is in a log.
//   - Serve returns when everything that it started has ended.
package sshd
