package app

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// Version returns the version of this program, and words if it has none.
func Version() string {
	version, _ := Stamped()
	return cmp.Or(version, "(no version)")
}

// Stamped returns the version that Go has stamped into this program: of a tag, or of a commit. `go run` stamps none.
func Stamped() (version string, stamped bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "", false
	}
	return strings.TrimPrefix(info.Main.Version, "v"), true
}
