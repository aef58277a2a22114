// Package sshd is the SSH server of a simulated machine, based on golang.org/x/crypto/ssh. It may import
// internal/bastionspec. It asks Host for everything that it needs to know of the machine.
//
// It promises:
//
//   - Users log in only with public keys in their authorized_keys file, under the rules of OpenSSH's StrictModes: the file and
//     the folders up to the home belong to the user or root, and no other user can write to them. Unknown and locked users, and
//     users without a home or without that file, are all refused in the same way. A line of the file with an unsupported option
//     is ignored, because the option may be meant to restrict the key.
//   - Only modern algorithms are offered (server.go).
//   - Every channel and every request is handled or refused explicitly: exec, shell, pty-req, env, window-change, signal
//     and the Host's subsystems of a session, direct-tcpip where the machine forwards. Remote forwarding, sockets, agents, X11
//     and other subsystems are refused.
//   - Everything has a limit (limits.go), before authentication and after.
//   - No password, key, command or byte of a session is in a log.
//   - Serve returns when everything that it started has ended.
package sshd
