package machine

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Limits of units.
const (
	// MaxUnits is how many units a machine may have.
	MaxUnits = 200
	// MaxUnitFile is how many bytes a unit's file and its drop-ins may have together.
	MaxUnitFile = 64 << 10
)

// The types of a service that differ. All others (notify, exec, forking, dbus, idle) are handled as simple.
const (
	typeSimple  = "simple"
	typeOneshot = "oneshot"
)

// The restart policies: when a unit is started again after it ended by itself.
const (
	restartNo        = "no"
	restartAlways    = "always"
	restartOnFailure = "on-failure"
	restartOnSuccess = "on-success"
)

type definition struct {
	description     string
	after           []string
	kind            string
	restart         string
	restartDelay    time.Duration
	startLimit      int
	startInterval   time.Duration
	timeoutStart    time.Duration
	remainAfterExit bool
	user, dir       string
	environment     []string
	environmentFile []string
	pre, start      []execLine
	stop            []execLine
	wantedBy        []string
}

type execLine struct {
	words []string
	// mayFail is true if the command has the prefix "-".
	mayFail bool
}

func (e execLine) String() string { return strings.Join(e.words, " ") }

// parseUnit parses a unit's file, followed by its drop-ins. Like systemd, it ignores unknown settings.
func parseUnit(text string) (*definition, error) {
	d := &definition{
		kind: typeSimple, restart: restartNo, restartDelay: 100 * time.Millisecond,
		startLimit: 5, startInterval: 10 * time.Second, timeoutStart: 90 * time.Second,
	}
	if len(text) > MaxUnitFile {
		return nil, fmt.Errorf("%d bytes are more than the %d that it may have", len(text), MaxUnitFile)
	}
	section := ""
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", " ")
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "", line[0] == '#', line[0] == ';':
		case line[0] == '[' && line[len(line)-1] == ']':
			section = line[1 : len(line)-1]
		default:
			key, value, found := strings.Cut(line, "=")
			if !found {
				return nil, fmt.Errorf("line %q is no assignment", line)
			}
			if err := d.set(section+"."+strings.TrimSpace(key), strings.TrimSpace(value)); err != nil {
				return nil, fmt.Errorf("%s: %w", strings.TrimSpace(key), err)
			}
		}
	}
	if len(d.start) > 1 && d.kind != typeOneshot {
		return nil, errors.New("only a unit of type oneshot may have several ExecStart")
	}
	return d, nil
}

func (d *definition) set(key, value string) (err error) {
	switch key {
	case "Unit.Description":
		d.description = value
	case "Unit.After":
		d.after = append(d.after, strings.Fields(value)...)
	case "Unit.StartLimitBurst":
		_, err = fmt.Sscanf(value, "%d", &d.startLimit)
	case "Unit.StartLimitIntervalSec":
		d.startInterval, err = seconds(value)
	case "Service.Type":
		d.kind = typeSimple
		if value == typeOneshot {
			d.kind = typeOneshot
		}
	case "Service.Restart":
		d.restart, err = policy(value)
	case "Service.RestartSec":
		d.restartDelay, err = seconds(value)
	case "Service.TimeoutStartSec":
		d.timeoutStart, err = seconds(value)
	case "Service.RemainAfterExit":
		d.remainAfterExit = value == "yes" || value == "true" || value == "on" || value == "1"
	case "Service.User":
		d.user = value
	case "Service.WorkingDirectory":
		d.dir = strings.TrimPrefix(value, "-")
	case "Service.Environment":
		d.environment, err = appendWords(d.environment, value)
	case "Service.EnvironmentFile":
		d.environmentFile = appendOrReset(d.environmentFile, value)
	case "Service.ExecStartPre":
		d.pre, err = appendExec(d.pre, value)
	case "Service.ExecStart":
		d.start, err = appendExec(d.start, value)
	case "Service.ExecStop":
		d.stop, err = appendExec(d.stop, value)
	case "Install.WantedBy":
		d.wantedBy = append(d.wantedBy, strings.Fields(value)...)
	}
	return err
}

func policy(value string) (string, error) {
	switch value {
	case restartAlways, restartOnFailure, restartOnSuccess, restartNo:
		return value, nil
	case "on-abnormal", "on-abort", "on-watchdog":
		return restartOnFailure, nil
	}
	return "", fmt.Errorf("unknown value %q", value)
}

// seconds parses a time span: a number of seconds, or numbers with units. "infinity" is returned as 0.
func seconds(value string) (time.Duration, error) {
	if value == "infinity" {
		return 0, nil
	}
	var total time.Duration
	for word := range strings.FieldsSeq(strings.NewReplacer("msec", "ms", "sec", "s", "min", "m", "hours", "h", "hour", "h").Replace(value)) {
		if strings.IndexFunc(word, func(r rune) bool { return r >= 'a' && r <= 'z' }) < 0 {
			word += "s"
		}
		span, err := time.ParseDuration(word)
		if err != nil || span < 0 {
			return 0, fmt.Errorf("%q is no time span", value)
		}
		total += span
	}
	return total, nil
}

func appendOrReset(list []string, value string) []string {
	if value == "" {
		return nil
	}
	return append(list, value)
}

func appendWords(list []string, value string) ([]string, error) {
	if value == "" {
		return nil, nil
	}
	words, err := splitWords(value)
	return append(list, words...), err
}

// appendExec adds a command. An empty value removes all commands before it, so that drop-ins can replace them.
func appendExec(list []execLine, value string) ([]execLine, error) {
	if value == "" {
		return nil, nil
	}
	command := strings.TrimLeft(value, "-@:+!")
	words, err := splitWords(command)
	if err != nil {
		return list, err
	}
	if len(words) == 0 || !strings.HasPrefix(words[0], "/") {
		return list, fmt.Errorf("%q does not begin with an absolute path", value)
	}
	return append(list, execLine{words: words, mayFail: strings.Contains(value[:len(value)-len(command)], "-")}), nil
}

// splitWords splits at blanks; quotes hold words together.
func splitWords(s string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	inWord, escaped := false, false
	for _, r := range s {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, inWord = r, true
		case r == ' ' || r == '\t':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("a quote in %q is not closed", s)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
