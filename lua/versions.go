package lua

import (
	"errors"
	"regexp"
	"strconv"
)

// Versions are the versions of records that a library works with: all from Oldest to Newest.
// They are stated in store/versions.lua.
type Versions struct{ Oldest, Newest int }

// Includes reports whether a version is one of them.
func (v Versions) Includes(version int) bool { return v.Oldest <= version && version <= v.Newest }

// String returns "version 2", or "versions 2 to 3".
func (v Versions) String() string {
	if v.Oldest == v.Newest {
		return "version " + strconv.Itoa(v.Newest)
	}
	return "versions " + strconv.Itoa(v.Oldest) + " to " + strconv.Itoa(v.Newest)
}

// Words returns the versions one by one, as text.
func (v Versions) Words() []string {
	var words []string
	for version := v.Oldest; version <= v.Newest; version++ {
		words = append(words, strconv.Itoa(version))
	}
	return words
}

var (
	// facadeLine is the line of a façade with its build number (named/facade.lua). Like the next one it begins with a literal text, because
	// regexp finds that some ten times as fast as the beginning of a line, and a library has 300 kB.
	facadeLine = regexp.MustCompile(`\nlocal facade = \{build = (\d{1,9})\}\n`)
	// versionsLine is the line with the versions of records (store/versions.lua).
	versionsLine = regexp.MustCompile(`\nlocal versions = \{oldest = (\d{1,3}), newest = (\d{1,3})\}\n`)
)

// versionsIn returns the versions of records that a library works with, from its text.
func versionsIn(text string) (v Versions, ok bool) {
	found := versionsLine.FindStringSubmatch(text)
	if found == nil {
		return v, false
	}
	v.Oldest, _ = strconv.Atoi(found[1])
	v.Newest, _ = strconv.Atoi(found[2])
	return v, true
}

// about returns the build number of a façade, and the versions of records that it works with, from its text.
func about(text string) (build int, v Versions, err error) {
	found := facadeLine.FindStringSubmatch(text)
	v, ok := versionsIn(text)
	if found == nil || !ok {
		return 0, v, errors.New("the library " + FacadeName + " has no build number")
	}
	build, err = strconv.Atoi(found[1])
	return build, v, err
}

// VersionsIn returns the build number of the façade whose text is given, and the versions of records that it
// works with. It returns false if the text is not that of a façade.
func VersionsIn(text string) (build int, records Versions, ok bool) {
	build, records, err := about(text)
	return build, records, err == nil
}

// Supersedes reports whether a façade can replace another one, from their texts: it is newer,
// and works with every version of records that the other works with.
func Supersedes(text, other string) bool {
	build, records, err := about(text)
	otherBuild, otherRecords, otherErr := about(other)
	return err == nil && otherErr == nil && build > otherBuild && records.Includes(otherRecords.Oldest) && records.Includes(otherRecords.Newest)
}

// Versions returns the versions of records that the calls work with.
func (l *Library) Versions() Versions { return l.versions }
