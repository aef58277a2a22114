package sftp

// Limits of a session. Sizes are in bytes. How large files and disks may be is up to the file system.
const (
	// MaxPacket is how long a packet may be, without the four bytes of its length.
	MaxPacket = 256 << 10
	// MaxTransfer is how much one request reads or writes; who asks to read more gets so much.
	MaxTransfer = MaxPacket - 1<<10
	// MaxHandles is how many files and directories may be open at a time.
	MaxHandles = 64
	// MaxEntries is how many entries all open directories may have together that have not been read yet.
	MaxEntries = 64 << 10

	// maxListing is about how long an answer with entries of a directory is.
	maxListing = 32 << 10
	// firstBuffer is how long the buffer for packets is until a longer one has come.
	firstBuffer = 34 << 10
	// maxMessage is how long a message about an error may be.
	maxMessage = 256
)

// umask is taken away from the modes of new files and directories.
const umask = 0o022
