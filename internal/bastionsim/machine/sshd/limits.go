package sshd

import "time"

// Limits of a server. Sizes are in bytes. golang.org/x/crypto/ssh has limits of its own: a packet has at most 256 KiB,
// the data in a channel's packet 32 KiB, and the data that a client may send ahead of a channel's reader 2 MiB.
const (
	LoginGraceTime = 20 * time.Second // for a client to authenticate
	MaxStartups    = 100              // connections that are not authenticated; a further one closes the oldest one
	MaxLoginSize   = 64 << 10         // what a client sends until it is authenticated
	MaxAuthTries   = 6                // failed attempts to authenticate of a connection
	MaxConnections = 100              // authenticated connections
	MaxSessions    = 100              // sessions of all connections
	MaxChannels    = 10               // channels of a connection

	KeepAliveInterval = 15 * time.Second // between two keepalive requests to a client
	KeepAliveCountMax = 3                // intervals that a request stays unanswered before the connection is closed
	IdleTimeout       = time.Hour        // without a byte in any channel of a connection

	MaxEnv         = 32       // environment variables of a session
	MaxEnvSize     = 1 << 10  // name and value of a variable together
	MaxCommandSize = 32 << 10 // a command
	MaxTermSize    = 64       // the name of a terminal
	MaxWindow      = 1000     // columns and rows of a terminal
	MaxSignals     = 8        // signals that wait for a session; further ones are dropped

	MaxAuthorizedKeys = 256 << 10 // an authorized_keys file; no key of a larger one is accepted
	maxMessage        = 256       // a reason that is sent to a client
)
