package retryexpr

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// taskVariable is what the rules put in place of tasks.<kind>. No expression can name
// it, as flatNames refuses every $ outside of texts.
const taskVariable = "$task"

// flatNames writes tasks.<kind> as a name that the language has, so that a kind may
// hold what its names may not: in tasks.my-task.code a minus, in tasks.pkg/render.code a
// division. The name is as long as what it stands for, so that places in errors hold.
func flatNames(kind, source string) (string, error) {
	var out strings.Builder
	flat := "tasks." + kind
	for i := 0; i < len(source); {
		n := skipText(source[i:])
		switch {
		case n > 0 && strings.ContainsAny(source[i:i+n], "\r\n"):
			return "", refuseRetry(source, "a text goes over the end of its line at byte %d: write \\n", i+1)
		case n > 0:
		case strings.HasPrefix(source[i:], "//") || strings.HasPrefix(source[i:], "/*"):
			return "", refuseRetry(source, "a comment begins at byte %d: leave it out, an expression may be stored as one line", i+1)
		case source[i] == '$':
			return "", refuseRetry(source, "$ at byte %d is not part of the language here: write tasks.%s and a member of it", i+1, kind)
		case strings.HasPrefix(source[i:], flat) && nameEnds(source[i+len(flat):]) && !isMember(source[:i]):
			out.WriteString(strings.Repeat("$", len(flat)))
			i += len(flat)
			continue
		default:
			n = max(wordLength(source[i:]), 1)
		}
		out.WriteString(source[i : i+n])
		i += n
	}
	return out.String(), nil
}

// skipText is the length of the quoted text that s begins with. One that does not end
// is left to the parser, which says so.
func skipText(s string) int {
	switch s[0] {
	case '`': // a doubled ` within makes two texts of it here, and comes out the same
		if i := strings.IndexByte(s[1:], '`'); i >= 0 {
			return i + 2
		}
		return len(s)
	case '"', '\'':
	default:
		return 0
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[0]:
			return i + 1
		}
	}
	return len(s)
}

// wordLength is the length of the name or number that s begins with.
func wordLength(s string) int {
	for i, c := range s {
		if c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return i
		}
	}
	return len(s)
}

// nameEnds tells whether a kind ends before rest: tasks.my-task is not in tasks.my-task2.
// A dot leads to a member, and may be part of a longer kind too; then what follows is no
// member, and the rules say so.
func nameEnds(rest string) bool {
	if rest == "" || rest[0] == '.' {
		return true
	}
	c, _ := utf8.DecodeRuneInString(rest)
	return !strings.ContainsRune("_-:/$", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c)
}

// isMember tells whether what follows is a member of something: x.tasks is not tasks.
// 1..tasks is a range up to it.
func isMember(before string) bool {
	before = strings.TrimRightFunc(before, unicode.IsSpace)
	return strings.HasSuffix(before, ".") && !strings.HasSuffix(before, "..")
}
