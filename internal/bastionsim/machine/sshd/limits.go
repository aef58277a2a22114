package sshd

import "time"

// Limits of a server. Sizes are in bytes. What golang.org/x/crypto/ssh limits by itself: a packet has at most 256 KiB, the
// data of a channel's packet 32 KiB, what a client may send of a channel ahead of its reader 2 MiB.
const (
	// LoginGraceTime is how long a client may take to authenticate.
	LoginGraceTime = 20 * time.Second
	// MaxStartups is how many connections may be unauthenticated at a time; for a further one the oldest is closed.
	MaxStartups = 100
	// MaxLoginSize is how many bytes a client may send until it is authenticated.
	MaxLoginSize = 64 << 10
	// MaxAuthTries is how many attempts to authenticate fail before the connection is closed.
	MaxAuthTries = 6
	// MaxConnections is how many authenticated connections there may be at a time.
	MaxConnections = 100
	// MaxSessions is how many sessions of all connections there may be at a time.
	MaxSessions = 100
	// MaxChannels is how many channels a connection may have at a time.
	MaxChannels = 10

	// KeepAliveInterval is how often the server asks a client whether it is there.
	KeepAliveInterval = 15 * time.Second
	// KeepAliveCountMax is how many questions in a row may stay without an answer before the connection is closed.
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

	// MaxAuthorizedKeys is how large an authorized_keys file may be; a larger one opens nothing.
	MaxAuthorizedKeys = 256 << 10
	// maxMessage is how long a reason may be that a client is told.
	maxMessage = 256
)
