package app

import (
	"runtime/debug"
	"strings"
)

// Stamped returns the version that Go has stamped into this program: of a tag, or of a commit. `go run` stamps none.
func Stamped() (version string, stamped bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "", false
	}
	return strings.TrimPrefix(info.Main.Version, "v"), true
}
