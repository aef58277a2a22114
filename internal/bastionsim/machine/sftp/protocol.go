package sftp

// version is that of the protocol.
const version = 3

// Types of packets.
const (
	typeInit          = 1
	typeVersion       = 2
	typeOpen          = 3
	typeClose         = 4
	typeRead          = 5
	typeWrite         = 6
	typeLstat         = 7
	typeFstat         = 8
	typeSetstat       = 9
	typeFsetstat      = 10
	typeOpendir       = 11
	typeReaddir       = 12
	typeRemove        = 13
	typeMkdir         = 14
	typeRmdir         = 15
	typeRealpath      = 16
	typeStat          = 17
	typeRename        = 18
	typeReadlink      = 19
	typeSymlink       = 20
	typeStatus        = 101
	typeHandle        = 102
	typeData          = 103
	typeName          = 104
	typeAttributes    = 105
	typeExtended      = 200
	typeExtendedReply = 201
)

// Codes of a status.
const (
	codeOK               = 0
	codeEOF              = 1
	codeNoSuchFile       = 2
	codePermissionDenied = 3
	codeFailure          = 4
	codeUnsupported      = 8
)

// Flags of opening a file.
const (
	openRead   = 1
	openWrite  = 2
	openAppend = 4
	openCreate = 8
	openTrunc  = 16
	openExcl   = 32
)

// Flags that say which attributes there are.
const (
	hasSize        = 1
	hasOwner       = 2
	hasPermissions = 4
	hasTimes       = 8
	hasExtended    = 1 << 31
)

// Types of files in permissions, as POSIX systems have them.
const (
	modeDir     = 0o040000
	modeRegular = 0o100000
	modeLink    = 0o120000
	modeChar    = 0o020000
	modeBlock   = 0o060000
)
