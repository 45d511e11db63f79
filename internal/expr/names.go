package expr

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// taskVariable replaces tasks.<kind> in the tree of an expression. No expression can contain it,
// since flatNames refuses every $ outside of texts.
const taskVariable = "$task"

// flatNames replaces tasks.<kind> by a valid name of the language. A kind can contain characters
// that are operators there: a minus in tasks.my-task.code, a division in tasks.pkg/render.code. The
// name has the same length as the text that it replaces, so positions in errors stay correct.
func flatNames(kind, source string) (string, error) {
	var out strings.Builder
	flat := "tasks." + kind
	for i := 0; i < len(source); {
		n := skipText(source[i:])
		switch {
		case n > 0 && strings.ContainsAny(source[i:i+n], "\r\n"):
			return "", refuseRetry(source, "the text at byte %d contains a line break: write \\n", i+1)
		case n > 0:
		case strings.HasPrefix(source[i:], "//") || strings.HasPrefix(source[i:], "/*"):
			return "", refuseRetry(source, "a comment begins at byte %d: leave it out, since an expression can be stored as one line", i+1)
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

// skipText returns the length of the quoted text that s begins with, 0 if s begins with none. If the
// text has no end, it returns len(s), and the parser reports the error.
func skipText(s string) int {
	switch s[0] {
	case '`': // a text with a doubled ` counts as two texts here, with the same result
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

// wordLength returns the length of the name or number that s begins with.
func wordLength(s string) int {
	for i, c := range s {
		if c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return i
		}
	}
	return len(s)
}

// nameEnds reports whether a kind ends before rest: tasks.my-task2 does not contain tasks.my-task.
// After a dot there is a member or the rest of a longer kind. In the second case the rules refuse
// it, since it is not a member.
func nameEnds(rest string) bool {
	if rest == "" || rest[0] == '.' {
		return true
	}
	c, _ := utf8.DecodeRuneInString(rest)
	return !strings.ContainsRune("_-:/$", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c)
}

// isMember reports whether the text after before is a member: in x.tasks, tasks is one. 1..tasks is
// a range.
func isMember(before string) bool {
	before = strings.TrimRightFunc(before, unicode.IsSpace)
	return strings.HasSuffix(before, ".") && !strings.HasSuffix(before, "..")
}

// RenameTask returns an expression of a task that reads tasks.<from> as one that reads tasks.<to>. A definition of a flow names
// the node; the task knows its kind.
func RenameTask(from, to, source string) string {
	var out strings.Builder
	for i := 0; i < len(source); {
		n := max(skipText(source[i:]), wordLength(source[i:]), 1)
		before, word := out.String(), source[i:i+n]
		if dots := tasksDot.FindString(source[i:]); dots != "" && !isMember(before) {
			if rest, found := strings.CutPrefix(source[i+len(dots):], from); found && nameEnds(rest) {
				out.WriteString("tasks." + to)
				i += len(dots) + len(from)
				continue
			}
		} else if tasksIndex.MatchString(before) && n == len(from)+2 && word[1:n-1] == from {
			word = word[:1] + to + word[n-1:]
		}
		out.WriteString(word)
		i += n
	}
	return out.String()
}

var (
	tasksDot   = regexp.MustCompile(`^tasks\s*\??\.\s*`)
	tasksIndex = regexp.MustCompile(`\btasks\s*\??\.?\[\s*$`)
)
