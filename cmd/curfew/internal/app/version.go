package app

import (
	"runtime/debug"
	"strings"
)

// Version returns the version that Go has stamped into this program: of a tag, or of a commit.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "(no version)"
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}
