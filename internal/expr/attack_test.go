package expr

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/refusal"
)

// Every producer can write an expression, and all workers evaluate it. Each of these is refused or
// evaluated with little memory, and in at most 50 times the time of a long expression without a trick, measured in the same moment.
func TestNoRetryExpressionTakesLong(t *testing.T) {
	redistest.NoRace(t, "it measures times, which the detector changes")
	nest := func(levels int, before, inner, after string) string {
		return strings.Repeat(before, levels) + inner + strings.Repeat(after, levels)
	}
	long := strings.Repeat("é", 1<<20)
	items := make([]any, 900)
	for i := range items {
		items[i] = map[string]any{"a": 1.0}
	}
	hostile := Attempt{Phase: "Failed", Code: 75, Msg: long, Parameters: map[string]any{"t": long[:4000], "list": items[:400], "huge": make([]any, 1<<20), "long": long}}
	hostile.Parameters["cycle"] = hostile.Parameters
	for _, row := range []struct {
		claim, source string
		refused       bool // at compile time
	}{
		{"a long range", "len(1..1000000000) > 0", true},
		{"a long range after in", "tasks.k.code in 1..1000000000", true},
		{"a range that overflows", "tasks.k.code in 0..9223372036854775807", true},
		{"a range that is computed", "tasks.k.code in 1..(1000*1000*1000)", true},
		{"as many ranges as fit", "false" + strings.Repeat(" or tasks.k.code in 80..1000", 27), false},
		{"ranges that are searched for a text", "false" + strings.Repeat(" or tasks.k.outputs.parameters.t in 0..1000", 20), false},
		{"nested loops", "all(1..1000, all(1..1000, all(1..1000, # > 0)))", true},
		{"a loop after a pipe", "1..1000 | map(# * 2) | sum() > 0", true},
		{"a reduction", "reduce(1..9, #acc + #acc, 'x') == ''", true},
		{"repeat", "repeat('x', 1000000000) == ''", true},
		{"repeat after a pipe", "'x' | repeat(1000000000) == ''", true},
		{"repeat by its full name", "::repeat('x', 1000000000) == ''", true},
		{"a text that doubles", "let a = tasks.k.msg + tasks.k.msg; let b = a + a; let c = b + b; c == ''", true},
		{"a text that grows", "tasks.k.msg" + strings.Repeat(" + tasks.k.msg", 40) + " == ''", true},
		{"a text that grows from parameters", "tasks.k.outputs.parameters.t" + strings.Repeat(" + tasks.k.outputs.parameters.t", 20) + " == ''", true},
		{"a list of texts as a text", "string([tasks.k.msg, tasks.k.msg]) == ''", true},
		{"a text of texts", nest(100, "string(", "tasks.k.outputs.parameters", ")") + " == ''", true},
		{"the clock", "now().Unix() > 0", true},
		{"a time zone", "timezone('UTC') == nil", true},
		{"a decoder", `fromJSON("[]") == nil`, true},
		{"an encoder", "toJSON(tasks.k.outputs.parameters) == ''", true},
		{"a join", "join([tasks.k.msg], tasks.k.msg) == ''", true},
		{"a replacement", "replace(tasks.k.msg, '', tasks.k.msg) == ''", true},
		{"a flattening", nest(100, "flatten([", "1", "])") + " == nil", true},
		{"a maximum of nothing", nest(20, "max(", "1", ")") + " == 1", false},
		{"nested functions", nest(20, "upper(", "tasks.k.msg", ")") + " == ''", false},
		{"one nested function too many", nest(21, "upper(", "tasks.k.msg", ")") + " == ''", true},
		{"more functions than fit", nest(600, "len(", "1", ")") + " == ''", true},
		{"a pattern of many steps", `tasks.k.msg matches "((a{10}){10}){10}"`, true},
		{"a pattern that is too large for Go", `tasks.k.msg matches "((a{100}){100}){100}"`, true},
		{"patterns of many steps together", "false" + strings.Repeat(" or tasks.k.msg matches '(.?){20}x'", 20), true},
		{"a long pattern", `tasks.k.msg matches "` + strings.Repeat("(a|b)", 700) + `"`, true},
		{"a pattern of classes", `tasks.k.msg matches "` + strings.Repeat(`\\pL`, 100) + `"`, true},
		{"classes in a class", `tasks.k.msg matches "[` + strings.Repeat(`\\pL\\PN`, 50) + `]+$x"`, true},
		{"classes of both cases", `tasks.k.msg matches "(?i)` + strings.Repeat("[B-\U0001e900]", 25) + `"`, true},
		{"classes of both cases, by flags inside", `tasks.k.msg matches "` + strings.Repeat("(?s-i:(?i:[B-\U0001e900]))", 9) + `"`, true},
		{"classes of both cases, by numbers", `tasks.k.msg matches "(?i)` + strings.Repeat(`[B-\\x{1e900}]`, 18) + `"`, true},
		{"classes that are wide by themselves", `tasks.k.msg matches "(?i)[` + strings.Repeat(`\\W\\D\\S^a-z`, 25) + `]+$x"`, false},
		{"a long class", `tasks.k.msg matches "[` + strings.Repeat("ab", 300) + `]"`, true},
		{"wide classes of one case", `tasks.k.msg matches "` + strings.Repeat("[B-\U0001e900]", 25) + `"`, false},
		{"the worst pattern", `tasks.k.msg matches "(?s)(.{0,4}){0,20}x$"`, false},
		{"the worst pattern again", `tasks.k.msg matches "` + strings.Repeat(".?", 80) + `x"`, false},
		{"a pattern for backtracking machines", `tasks.k.msg matches "^(é+)+$"`, false},
		{"a deep pattern", `tasks.k.msg matches "` + nest(1000, "(", "a", ")") + `"`, true},
		{"a pattern made at run time", "tasks.k.msg matches tasks.k.outputs.parameters.t", true},
		{"deep brackets", nest(2000, "(", "true", ")"), false},
		{"deep nots", strings.Repeat("not ", 1000) + "true", true},
		{"deep minus", strings.Repeat("-", 4000) + "1 == 1", true},
		{"deep lists", nest(2000, "[", "", "]") + " == nil", true},
		{"deep members", "tasks.k.outputs.parameters" + strings.Repeat(".x", 1000) + " == nil", true},
		{"?: in ?: doubles the tree", nest(100, "(", "true", " ?: false)"), true},
		{"?: in ?: on the right", strings.Repeat("true ?: ", 400) + "false", true},
		{"comparisons in comparisons double the tree", nest(40, "1 < (", "1", ") < 1"), true},
		{"members of choices double the tree", nest(60, "(", "tasks.k.outputs.parameters", ".x ?: 1)") + " == 1", true},
		{"a range of a choice, which the optimizer would double", nest(35, "(", "tasks.k.code", " in 1..2 ? 1 : 2)") + " == 1", false},
		{"a long choice", strings.Repeat("tasks.k.code == 1 ? true : ", 140) + "false", true},
		{"many ifs", strings.Repeat("if true { true } else ", 180) + "{ true }", true},
		{"a search for a long text", "false" + strings.Repeat(" or tasks.k.msg contains tasks.k.outputs.parameters.t", 20), false},
		{"comparisons of lists", "false" + strings.Repeat(" or tasks.k.outputs.parameters.list == tasks.k.outputs.parameters.list and false", 16), false},
		{"searches in lists", "false" + strings.Repeat(" or tasks.k.outputs.parameters.list in tasks.k.outputs.parameters.list", 16), false},
		{"too many values", "1 in tasks.k.outputs.parameters.huge", false},
		{"too long a text", "tasks.k.outputs.parameters.long == ''", false},
		{"parameters without end", "tasks.k.outputs.parameters.cycle == nil", false},
		{"all parameters", "tasks.k.outputs.parameters == nil", false},
		{"a parameter whose name is computed", "tasks.k.outputs.parameters[tasks.k.msg] == nil", false},
		{"a large exponent", "2 ** 1e300 == 1", false},
		{"a number that overflows", strings.Repeat("9223372036854775807 * ", 50) + "2 > 1", false},
		{"rubbish", strings.Repeat("]", 4000), true},
		{"commas", "max(" + strings.Repeat(",", 4000) + ")", true},
	} {
		for _, source := range []string{row.source, "not (" + row.source + ")"} {
			if len(source) > maxSource {
				t.Errorf("%s: the test is useless, since %d bytes are refused for their length", row.claim, len(source))
				continue
			}
			var err error
			spent, bytes := cost(func() { _, err = readRetry("k", source) })
			if errors.Is(err, refusal.ErrInvalid) != row.refused {
				t.Errorf("%s: refused = %v, want %v", row.claim, err, row.refused)
			}
			if bytes > 4<<20 || tooLong(spent, func() { readRetry("k", source) }) {
				t.Errorf("%s: compiled in %v and %d bytes, want at most 4 MiB, and 50 times what a plain expression takes", row.claim, spent, bytes)
			}
			if err != nil {
				continue
			}
			e, _ := compileRetry("k", source)
			if spent, bytes = cost(func() { e.allows(hostile) }); bytes > 4<<20 || tooLong(spent, func() { e.allows(hostile) }) {
				t.Errorf("%s: evaluated in %v and %d bytes, want at most 4 MiB, and 50 times what a plain expression takes", row.claim, spent, bytes)
			}
		}
	}
}

// tooLong reports whether spent, or the cost of further runs, is more than 50 times the cost of a plain expression in the same moment.
func tooLong(spent time.Duration, f func()) bool {
	plain := "true" + strings.Repeat(" and true", 400)
	for range 5 {
		if reference, _ := cost(func() { readRetry("k", plain) }); spent <= 50*reference {
			return false
		}
		spent, _ = cost(f)
	}
	return true
}

// cost returns the least time and memory of a few runs, so that other work of the machine does not
// count. A run that takes very long is not repeated.
func cost(f func()) (spent time.Duration, bytes uint64) {
	var before, after runtime.MemStats
	for range 5 {
		runtime.ReadMemStats(&before)
		start := time.Now()
		f()
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; spent == 0 || took < spent {
			spent, bytes = took, used
		}
		// real time: the least of several samples counts
		if spent < 25*time.Millisecond || spent > time.Second {
			break
		}
	}
	return spent, bytes
}

// FuzzRetryExpression checks that every text is refused with an error of one line, or is evaluated to
// true, false or an error of one line. It always has the same result. The fuzzer finds an input that hangs.
func FuzzRetryExpression(f *testing.F) {
	for _, source := range []string{
		"tasks.K.phase != 'Succeeded'", "tasks.K.code in [1, 2, -3]", "tasks.K.code in 1..9", `tasks.K.msg contains "503" and not (tasks.K.msg startsWith 'x')`,
		`tasks.K.msg matches "(?i)^a+(b|c){1,9}$"`, "tasks.K.outputs.parameters.wait > 3", `tasks["K"].outputs.parameters["a-b"] ?? 1 == 1`, "true", "false", `"true"`,
		"1 < tasks.K.code < 9", "tasks.K.code == 1 ? true : false", "if true { false } else { true }", "(true ?: false) ?: true", "tasks?.K?.msg == nil", "tasks.K.msg[1:3] == 'x'",
		"int(tasks.K.msg) + 1 == 2", "string(tasks.K.code) == '7' || len(lower(tasks.K.msg)) > 2 && !false", "tasks.K.msg | upper() == 'X'", "max(1, 2.5, tasks.K.code) ** 2 % 3 == 0",
		"tasks.other.code == 1", "let x = 1; x == 1", "all(1..9, # > 1)", "{a: 1}.a == 1", "$env", "true // c", "/* */ true", "`a``b` == 'c'", "'\\'' == \"\\\"\"", "b'x' == b'\\x00'",
		"tasks.K.code-1 == tasks.K.code", "tasks.K", "tasks", "((((", "]]]]", "\x00", "\xff", "é == ü", "0x1F == 1e3", "1..2..3", "true\r\n", "'a\nb'", "::len('x') == 1", "#.x", "nil",
	} {
		f.Add("k", strings.ReplaceAll(source, "K", "k"), "Failed", 75, "a b c")
		f.Add("my-task/a.b:c", strings.ReplaceAll(source, "K", "my-task/a.b:c"), "Timeout", -1, "Task exceeded deadline")
	}
	f.Fuzz(func(t *testing.T, kind, source, phase string, code int, msg string) {
		a := Attempt{Kind: kind, Phase: phase, Code: code, Msg: msg, Parameters: map[string]any{"wait": 2.0, "a-b": msg, "list": []any{msg, true, nil}}}
		got, err := EvaluateRetry(kind, source, a)
		if err != nil && (got || len(err.Error()) > 700 || strings.ContainsAny(err.Error(), "\n\r\x00\x1b")) {
			t.Errorf("%q = %v, %q", source, got, err)
		}
		again, err2 := EvaluateRetry(kind, source, a)
		if again != got || (err == nil) != (err2 == nil) {
			t.Errorf("%q = %v, %v, and again %v, %v", source, got, err, again, err2)
		}
		// An expression can be stored as one line.
		if flat, err2 := EvaluateRetry(kind, strings.NewReplacer("\n", " ", "\r", " ").Replace(source), a); err == nil && (flat != got || err2 != nil) {
			t.Errorf("%q = %v, and in one line %v, %v", source, got, flat, err2)
		}
	})
}
