package sftp

// Limits of a session. Sizes are in bytes. The file system limits the sizes of files and disks.
const (
	MaxPacket   = 256 << 10         // a packet, without the four bytes of the length itself
	MaxTransfer = MaxPacket - 1<<10 // what one request reads or writes; a longer read is shortened to it
	MaxHandles  = 64                // open files and directories
	MaxEntries  = 64 << 10          // unread entries of all open directories together

	entrySize   = 256      // approximately, an unread entry without its name
	maxListing  = 32 << 10 // after this length, an answer gets no more entries of a directory
	firstBuffer = 34 << 10 // the initial capacity of the buffer for packets
)

// umask is removed from the modes of new files and directories.
const umask = 0o022
