package sshd

import "time"

// Limits of a server. Sizes are in bytes. golang.org/x/crypto/ssh has limits of its own: a packet has at most 256 KiB,
// the data in a channel's packet 32 KiB, and the data that a client may send ahead of a channel's reader 2 MiB.
const (
	// LoginGraceTime is how long a client may take to authenticate.
	LoginGraceTime = 20 * time.Second
	// MaxStartups is how many connections may be unauthenticated at a time. A further one closes the oldest one.
	MaxStartups = 100
	// MaxLoginSize is how many bytes a client may send until it is authenticated.
	MaxLoginSize = 64 << 10
	// MaxAuthTries is how many attempts to authenticate may fail before the connection is closed.
	MaxAuthTries = 6
	// MaxConnections is how many authenticated connections there may be at a time.
	MaxConnections = 100
	// MaxSessions is how many sessions of all connections there may be at a time.
	MaxSessions = 100
	// MaxChannels is how many channels a connection may have at a time.
	MaxChannels = 10

	// KeepAliveInterval is how often the server sends a client a keepalive request.
	KeepAliveInterval = 15 * time.Second
	// KeepAliveCountMax is for how many intervals a keepalive request may stay unanswered before the connection is
	// closed.
	KeepAliveCountMax = 3
	// IdleTimeout is how long a connection may be without a byte in any channel.
	IdleTimeout = time.Hour

	// MaxEnv is how many environment variables a session may set.
	MaxEnv = 32
	// MaxEnvSize is how long a variable's name and value may be together.
	MaxEnvSize = 1 << 10
	// MaxCommandSize is how long a command may be.
	MaxCommandSize = 32 << 10
	// MaxTermSize is how long the name of a terminal may be.
	MaxTermSize = 64
	// MaxWindow is how many columns and rows a terminal may have.
	MaxWindow = 1000
	// MaxSignals is how many signals wait for a session; further ones are dropped.
	MaxSignals = 8

	// MaxAuthorizedKeys is how large an authorized_keys file may be. A larger file is not read, and no key in it is
	// accepted.
	MaxAuthorizedKeys = 256 << 10
	// maxMessage is the maximum length of a reason that is sent to a client.
	maxMessage = 256
)
