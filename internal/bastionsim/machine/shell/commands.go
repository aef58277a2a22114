package shell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// program is a program of the machine: its options, and the function that implements it.
type program struct {
	// options are the options for parseFlags. With "*", all arguments are operands, which the program parses itself.
	options string
	// operands is the minimum number of operands.
	operands int
	run      func(p *Process, f flags) int
	// usage is the exit status after wrong options. Zero means 1.
	usage int
}

// programs are the programs behind the files in /usr/bin of the machine's image (vfs.Programs).
var programs map[string]program

func init() { // not in the declaration, because programs run programs
	programs = map[string]program{
		// Files
		"ls":       {run: lsProgram, usage: 2, options: "l a|all A|almost-all h|human-readable d|directory 1 G|color"},
		"stat":     {run: statProgram, operands: 1, options: "c|format:"},
		"df":       {run: dfProgram, options: "h|human-readable"},
		"mkdir":    {run: mkdirProgram, operands: 1, options: "p|parents"},
		"rm":       {run: rmProgram, options: "r|R|recursive f|force d|no-preserve-root"},
		"cp":       {run: cpProgram, options: "r|R|recursive f|force T|no-target-directory"},
		"mv":       {run: mvProgram, options: "f|force T|no-target-directory"},
		"ln":       {run: lnProgram, options: "s|symbolic f|force T|n|no-dereference"},
		"touch":    {run: touchProgram, operands: 1, options: "d|date: t:"},
		"readlink": {run: readlinkProgram, operands: 1, options: "f|canonicalize"},
		"mktemp":   {run: mktempProgram, options: "d|directory"},
		"basename": {run: basenameProgram, operands: 1},
		"dirname":  {run: dirnameProgram, operands: 1},
		"chmod":    {run: chmodProgram, operands: 2, options: "*"},
		"chown":    {run: chownProgram, operands: 2, options: "R|recursive"},
		"find":     {run: findProgram, options: "*"},

		// Text
		"cat":       {run: catProgram},
		"less":      {run: catProgram},
		"head":      {run: headProgram, options: "n|lines: c|bytes:"},
		"tail":      {run: tailProgram, options: "n|lines: f|follow F"},
		"tee":       {run: teeProgram, options: "a|append"},
		"wc":        {run: wcProgram, options: "l|lines w|words c|bytes|chars|m"},
		"cut":       {run: cutProgram, options: "d|delimiter: f|fields: c|characters:"},
		"sort":      {run: sortProgram, usage: 2, options: "r|reverse n|numeric-sort u|unique"},
		"tr":        {run: trProgram, operands: 1, options: "+d|delete s|squeeze-repeats"},
		"seq":       {run: seqProgram, operands: 1, options: "*"},
		"yes":       {run: yesProgram, options: "*"},
		"base64":    {run: base64Program, options: "d|decode i w|wrap:"},
		"sha256sum": {run: sha256Program},
		"grep":      {run: grepProgram, usage: 2, options: grepOptions},
		"sed":       {run: sedProgram, options: "n|quiet|silent E|r|regexp-extended i|in-place e|expression:"},

		// Programs that run others
		"bash":  {run: bashProgram, usage: 2, options: bashOptions},
		"sh":    {run: bashProgram, usage: 2, options: bashOptions},
		"env":   {run: envProgram, usage: 125, options: "+i|ignore-environment"},
		"nohup": {run: envProgram, operands: 1, usage: 125, options: "+"},
		"which": {run: whichProgram},
		"sleep": {run: sleepProgram, operands: 1},

		// The system
		"true":       {run: exitStatus(0), options: "*"},
		"false":      {run: exitStatus(1), options: "*"},
		"clear":      {run: exitStatus(0), options: "*"},
		"sync":       {run: syncProgram, options: "*"},
		"mkfifo":     {run: refused(1, "Operation not permitted: this machine is simulated"), options: "*"},
		"date":       {run: dateProgram, options: "u|utc d|date:"},
		"uname":      {run: unameProgram, options: "a|all s n|nodename r|kernel-release m|machine"},
		"uptime":     {run: uptimeProgram},
		"hostname":   {run: hostnameProgram, options: "I|all-ip-addresses f|fqdn s|short"},
		"ps":         {run: psProgram, options: "*"},
		"ip":         {run: ipProgram, options: "*"},
		"reboot":     {run: powerProgram, options: "*"},
		"shutdown":   {run: powerProgram, options: "*"},
		"poweroff":   {run: powerProgram, options: "*"},
		"containerd": {run: rootOnly(containerdProgram), options: "*"},
		"scp":        {run: scpProgram, options: "+t f r p d v q"},
		"systemctl":  {run: systemctlProgram, options: systemctlOptions},
		"journalctl": {run: journalctlProgram, options: "u|unit: n|lines: o|output: f|follow e x b|boot q|quiet|no-pager"},

		// Users
		"id":       {run: idProgram, options: "u|user g|group G|groups n|name"},
		"whoami":   {run: idProgram},
		"useradd":  {run: rootOnly(useraddProgram), operands: 1, usage: 2, options: userOptions},
		"passwd":   {run: refused(1, noPasswords), options: "*"},
		"chpasswd": {run: refused(1, noPasswords), options: "*"},
		"sudo":     {run: sudoProgram, options: "+n|non-interactive u|user: E|preserve-env H i|s|login"},
		"su":       {run: suProgram, options: "c|command: l|login"},
	}
	for _, name := range []string{"echo", "kill", "printf", "pwd", "test", "["} {
		programs[name] = program{run: builtinProgram(name), options: "*"}
	}
	for name, status := range map[string]int{"curl": 7, "wget": 4, "nc": 1, "nslookup": 1, "ping": 2, "ssh": 255, "sftp": 255} {
		programs[name] = program{run: refused(status, noNetwork), options: "*"}
	}
	for _, name := range []string{"apt-get", "apt-mark", "iptables", "logrotate", "modprobe", "sysctl",
		"update-ca-certificates", "zypper"} { // without effect here
		programs[name] = program{run: rootOnly(exitStatus(0)), options: "*"}
	}
}

const (
	bashOptions = "+c l|login s i a b e f h k m n p t u v x B E H P T o: V|version norc noprofile posix"
	grepOptions = "i|ignore-case v|invert-match n|line-number c|count q|quiet|silent E|extended-regexp F|fixed-strings " +
		"r|R|recursive w|word-regexp o|only-matching l|files-with-matches h|no-filename e|regexp: G|color"
	systemctlOptions = "w|now q|quiet a|all l|full|no-pager|no-block"
	userOptions      = "m|create-home M|no-create-home s|shell: d|home-dir: G|groups: c|comment: U|user-group"
)

func (f flags) number(c byte, otherwise int) (int, error) {
	text := f.value(c, "")
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		err = fmt.Errorf("invalid number: '%s'", text)
	}
	return n, err
}

func (pr program) parse(args []string) (flags, error) {
	if pr.options == "*" {
		return flags{set: map[byte]bool{}, args: slices.Clone(args)}, nil
	}
	if len(args) > 0 && strings.Contains(pr.options, "n|lines:") {
		if count, ok := strings.CutPrefix(args[0], "-"); ok && isNumber(count) { // head -5
			args = slices.Concat([]string{"-n" + count}, args[1:])
		}
	}
	return parseFlags(args, pr.options)
}
