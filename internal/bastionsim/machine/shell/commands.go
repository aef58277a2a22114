package shell

import "maps"

// programs are the commands behind the files in /usr/bin of the machine's image (vfs.Programs).
var programs map[string]Command

func init() {
	programs = map[string]Command{}
	for _, family := range []map[string]Command{fileCommands, textCommands, systemCommands, userCommands, unitCommands, netCommands} {
		maps.Copy(programs, family)
	}
}
