package lua

import (
	"errors"
	"regexp"
	"strconv"
)

// Versions is the range of record versions that a library works with. store/versions.lua defines it.
type Versions struct{ Oldest, Newest int }

// Includes reports whether a version is in the range.
func (v Versions) Includes(version int) bool { return v.Oldest <= version && version <= v.Newest }

// String returns "version 2", or "versions 2 to 3".
func (v Versions) String() string {
	if v.Oldest == v.Newest {
		return "version " + strconv.Itoa(v.Newest)
	}
	return "versions " + strconv.Itoa(v.Oldest) + " to " + strconv.Itoa(v.Newest)
}

// Words returns each version as text.
func (v Versions) Words() []string {
	var words []string
	for version := v.Oldest; version <= v.Newest; version++ {
		words = append(words, strconv.Itoa(version))
	}
	return words
}

var (
	// facadeLine matches the build number of a façade (named/facade.lua). Like versionsLine it
	// begins with a literal newline, because regexp finds that some ten times as fast as the
	// beginning of a line, and a library has 300 kB.
	facadeLine = regexp.MustCompile(`\nlocal facade = \{build = (\d{1,9})\}\n`)
	// versionsLine matches the versions of records (store/versions.lua).
	versionsLine = regexp.MustCompile(`\nlocal versions = \{oldest = (\d{1,3}), newest = (\d{1,3})\}\n`)
)

// versionsIn returns the versions of records in the text of a library.
func versionsIn(text string) (v Versions, ok bool) {
	m := versionsLine.FindStringSubmatch(text)
	if m == nil {
		return v, false
	}
	v.Oldest, _ = strconv.Atoi(m[1])
	v.Newest, _ = strconv.Atoi(m[2])
	return v, true
}

// about returns the build number of a façade and its versions of records, from its text.
func about(text string) (build int, v Versions, err error) {
	m := facadeLine.FindStringSubmatch(text)
	v, ok := versionsIn(text)
	if m == nil || !ok {
		return 0, v, errors.New("the library " + FacadeName + " has no build number")
	}
	build, err = strconv.Atoi(m[1])
	return build, v, err
}

// VersionsIn returns the build number of a façade and its versions of records, from its text. If the
// text is not of a façade, it returns false.
func VersionsIn(text string) (build int, records Versions, ok bool) {
	build, records, err := about(text)
	return build, records, err == nil
}

// Supersedes reports whether a façade can replace another one, from their texts: it must be newer,
// and work with every version of records that the other works with.
func Supersedes(text, other string) bool {
	build, records, err := about(text)
	otherBuild, otherRecords, otherErr := about(other)
	return err == nil && otherErr == nil && build > otherBuild && records.Includes(otherRecords.Oldest) && records.Includes(otherRecords.Newest)
}

// Versions returns the versions of records that the calls work with.
func (l *Library) Versions() Versions { return l.versions }
