package sftp

// Limits of a session. Sizes are in bytes. The file system limits the sizes of files and disks.
const (
	// MaxPacket is the maximum length of a packet, without the four bytes of the length itself.
	MaxPacket = 256 << 10
	// MaxTransfer is the maximum that one request reads or writes. A longer read is shortened to it.
	MaxTransfer = MaxPacket - 1<<10
	// MaxHandles is the maximum number of open files and directories.
	MaxHandles = 64
	// MaxEntries is the maximum number of unread entries of all open directories together.
	MaxEntries = 64 << 10

	// entrySize is the approximate size of an unread entry, without its name.
	entrySize = 256
	// maxListing is the length after which an answer gets no more entries of a directory.
	maxListing = 32 << 10
	// firstBuffer is the initial capacity of the buffer for packets.
	firstBuffer = 34 << 10
)

// umask is removed from the modes of new files and directories.
const umask = 0o022
