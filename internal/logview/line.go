package logview

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gardenlite/gardenlite/internal/statedir"
)

// Line is a line of the log.
type Line struct {
	Text  string
	Time  time.Time
	Level slog.Level
	// Component is the first word of the logger's name: "gardenlet" for "gardenlet local".
	Component string
	// Cluster is "garden", "seed-NAME", or the technical ID of a shoot.
	Cluster string
}

// parse returns a line. ok is false for one that the logger has not written, such as those of a crash.
func parse(text string) (line Line, ok bool) {
	fields := struct{ Time, Level, Logger, Cluster string }{}
	if strings.HasPrefix(text, "{") {
		if json.Unmarshal([]byte(text), &fields) != nil {
			return Line{Text: text}, false
		}
	} else {
		eachField(text, func(key, value string) {
			switch key {
			case "time":
				fields.Time = value
			case "level":
				fields.Level = value
			case "logger":
				fields.Logger = value
			case "cluster":
				fields.Cluster = value
			}
		})
	}
	line = Line{Text: text, Cluster: fields.Cluster}
	var err error
	if line.Time, err = time.Parse(time.RFC3339Nano, fields.Time); err != nil ||
		line.Level.UnmarshalText([]byte(fields.Level)) != nil {
		return Line{Text: text}, false
	}
	line.Component = fields.Logger
	if end := strings.IndexAny(line.Component, " /."); end >= 0 { // behind it are the seed, and parts of the component
		line.Component = line.Component[:end]
	}
	return line, true
}

// eachField calls f for the keys and values of a line in the text format, of which each may be quoted.
func eachField(text string, f func(key, value string)) {
	for text != "" {
		key, rest := token(text, "=")
		rest, isField := strings.CutPrefix(rest, "=")
		if !isField {
			return
		}
		value, rest := token(rest, " ")
		f(key, value)
		text = strings.TrimPrefix(rest, " ")
	}
}

// token returns the beginning of a text, which ends at the separator unless it is quoted, and the rest.
func token(text, separator string) (token, rest string) {
	if quoted, err := strconv.QuotedPrefix(text); err == nil {
		token, _ = strconv.Unquote(quoted) // it is quoted
		return token, text[len(quoted):]
	}
	if end := strings.Index(text, separator); end >= 0 {
		return text[:end], text[end:]
	}
	return text, ""
}

// Filter chooses lines.
type Filter struct {
	// Name is the name of a component or a cluster; all if it is empty. A seed can be named without its prefix, a shoot
	// as PROJECT/NAME, and a component of a seed as in the status: "gardenlet local".
	Name string
	// Since is the time of the first line; the zero time means from the beginning.
	Since time.Time
	// Level is the lowest level.
	Level slog.Level
}

func (f *Filter) names(l Line) bool {
	component, seed, isOfSeed := strings.Cut(f.Name, " ")
	if isOfSeed {
		return l.Component == component && l.Cluster == statedir.SeedPrefix+seed
	}
	return f.Name == "" || l.Component == f.Name || slices.Contains(f.clusters(), l.Cluster)
}

func (f *Filter) clusters() []string {
	if project, name, isShoot := strings.Cut(f.Name, "/"); isShoot {
		return []string{"shoot--" + project + "--" + name}
	}
	return []string{f.Name, statedir.SeedPrefix + f.Name}
}

// ParseLevel returns the level of a name: debug, info, warn or error.
func ParseLevel(name string) (slog.Level, bool) {
	at := slices.Index(Levels, name)
	return slog.Level(4*at) + slog.LevelDebug, at >= 0
}

// Levels are the names of the levels.
var Levels = []string{"debug", "info", "warn", "error"}
