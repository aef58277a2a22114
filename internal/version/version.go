// Package version has the version of gardenlite, and that of the Gardener API that it serves.
package version

import (
	"runtime/debug"
	"sync"
)

// version is set by the linker for releases.
var version string

// GardenerVersion is the version of Gardener whose API is served; a test compares it with go.mod.
const GardenerVersion = "v1.150.0"

// Version is the version of this binary: the release's, else the commit it was built from.
var Version = sync.OnceValue(func() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, modified := "", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			modified = "-dirty"
		}
	}
	if revision == "" {
		return info.Main.Version
	}
	return "v0.0.0-" + revision[:min(12, len(revision))] + modified
})
