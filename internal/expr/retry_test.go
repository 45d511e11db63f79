package expr

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/refusal"
)

// flaky is an attempt like those of seed 2.
var flaky = Attempt{Kind: "flaky", Phase: "Failed", Code: 75, Msg: "GET /a: 503 Service Unavailable, try later", Parameters: map[string]any{
	"again": true, "said": "true", "wait": 2.0, "name": "a", "list": []any{1.0, "b"}, "deep": map[string]any{"x": 7.0}, "a-b": 1.0, "none": nil,
	"tasks": map[string]any{"flaky": 5.0},
}}

func TestRetryExpressionAnswers(t *testing.T) {
	for _, row := range []struct {
		claim, source string
		want          bool
	}{
		{"S2.11 seed 2's expression retries Failed", "tasks.flaky.phase != 'Succeeded'", true},
		{"S2.12 phase is readable", `tasks.flaky.phase == "Failed"`, true},
		{"S2.12 another phase", `tasks.flaky.phase == "Timeout"`, false},
		{"S2.12 phase in a list", `tasks.flaky.phase in ["Error", "Timeout"]`, false},
		{"S2.12 phase not in a list", `tasks.flaky.phase not in ["Error", "Timeout"]`, true},
		{"S2.12 code is readable", "tasks.flaky.code == 75", true},
		{"S2.12 code is a number", "tasks.flaky.code > 74 and tasks.flaky.code <= 75", true},
		{"code in a list", "tasks.flaky.code in [1, 75, -1]", true},
		{"code in a range", "tasks.flaky.code in 70..79", true},
		{"code outside of a range", "tasks.flaky.code in 0..74", false},
		{"arithmetic with code", "tasks.flaky.code % 10 == 5 && tasks.flaky.code + 1 == 76", true},
		{"a chain of comparisons", "74 < tasks.flaky.code < 76", true},
		{"S2.12 msg is readable", `tasks.flaky.msg contains "503"`, true},
		{"startsWith and endsWith", `tasks.flaky.msg startsWith "GET" and not (tasks.flaky.msg endsWith "now")`, true},
		{"msg matches", `tasks.flaky.msg matches "(?i)50[0-9] service"`, true},
		{"a pattern in any script", `not (tasks.flaky.msg matches "超时|(?:нет|é)")`, true},
		{"msg does not match", `not (tasks.flaky.msg matches "^503$")`, true},
		{"a function of msg", `lower(tasks.flaky.msg) contains "unavailable" and len(tasks.flaky.msg) > 10`, true},
		{"a function after a pipe", `tasks.flaky.msg | upper() contains "TRY LATER"`, true},
		{"a text of a number", `string(tasks.flaky.code) startsWith "7"`, true},
		{"S2.12 a parameter is readable", "tasks.flaky.outputs.parameters.wait == 2", true},
		{"a parameter of any name", `tasks.flaky.outputs.parameters["a-b"] == 1`, true},
		{"a parameter in brackets", `tasks["flaky"]["outputs"]["parameters"]["wait"] < 3`, true},
		{"a parameter of a parameter", "tasks.flaky.outputs.parameters.deep.x == 7", true},
		{"an element of a parameter", "tasks.flaky.outputs.parameters.list[0] == 1", true},
		{"a parameter with the name tasks", "tasks.flaky.outputs.parameters.tasks.flaky == 5", true},
		{"a member of a list", `"b" in tasks.flaky.outputs.parameters.list`, true},
		{"a parameter that exists", `"wait" in tasks.flaky.outputs.parameters`, true},
		{"a parameter that does not exist", `"weight" in tasks.flaky.outputs.parameters`, false},
		{"a missing parameter is nil", "tasks.flaky.outputs.parameters.weight == nil", true},
		{"a missing parameter equals nothing", "tasks.flaky.outputs.parameters.weight == 5", false},
		{"a missing parameter has a default", "(tasks.flaky.outputs.parameters.weight ?? 3) == 3", true},
		{"a missing parameter contains nothing", `tasks.flaky.outputs.parameters.weight contains "x"`, false},
		{"a member of a missing parameter, with ?.", "tasks.flaky.outputs.parameters.weight?.x == nil", true},
		{"a parameter that is a bool", "tasks.flaky.outputs.parameters.again", true},
		{"S2.13 the text true counts", "tasks.flaky.outputs.parameters.said", true},
		{"S2.13 the text false counts", `"false"`, false},
		{"a number in a text", `int("75") == tasks.flaky.code`, true},
		{"always", "true", true},
		{"never", "false", false},
		{"either", "tasks.flaky.code == 1 ? false : tasks.flaky.code == 75", true},
		{"if and else", "if tasks.flaky.code == 1 { false } else { true }", true},
		{"?: returns its left side if that is true", "(tasks.flaky.code == 75 ?: false)", true},
		{"white space and lines", "\n tasks . flaky\n\t. code == 75\r\n", true},
		{"the name in a text is a text", `"tasks.flaky.code" == 'tasks.flaky.code'`, true},
		{"quotes in texts", `"\"tasks.flaky.code" != 'it\'s' and ` + "`a``b`" + ` == "a` + "`" + `b"`, true},
	} {
		if got, err := EvaluateRetry("flaky", row.source, flaky); err != nil || got != row.want {
			t.Errorf("%s: %s = %v, %v, want %v", row.claim, row.source, got, err, row.want)
		}
	}
}

// Each valid kind can be named as tasks.<kind>, and in brackets.
func TestEveryKindCanBeNamedInAnExpression(t *testing.T) {
	for _, kind := range []string{
		"flaky", "my-task", "my-task-2", "pkg.render", "a/b", "a//b", "a:b", "a::b", "a--b", "a-", "a.", "a/", "1st", "2", "2.5", "0x1f", "1e3",
		"tasks", "tasks.tasks", "tasks.a.code", "phase", "a.phase", "code.code", "in", "not", "let", "true", "nil", "matches-x", "x_y", "A", strings.Repeat("k-", 64),
	} {
		a := Attempt{Kind: kind, Phase: "Error", Code: 7, Msg: "m"}
		for _, name := range []string{"tasks." + kind, fmt.Sprintf("tasks[%q]", kind)} {
			source := strings.ReplaceAll(`NAME.code == 7 and (NAME.phase=="Error") and 7 in 1..9 and not(NAME.code-1==7) or NAME?.msg=='x'`, "NAME", name)
			if got, err := EvaluateRetry(kind, source, a); !got || err != nil {
				t.Errorf("%s: %s = %v, %v, want true", kind, source, got, err)
			}
		}
		for _, other := range []string{kind + "2", kind + "-x", kind + "x", "x" + kind, "x-" + kind, kind + ".x", kind + "/x", kind + "é", kind + "$"} {
			if got, err := EvaluateRetry(kind, "tasks."+other+".code == 7", a); got || !errors.Is(err, refusal.ErrInvalid) {
				t.Errorf("%s: tasks.%s.code = %v, %v, want ErrInvalid, since it is another task", kind, other, got, err)
			}
		}
	}
}

// S2.13: if an expression fails, or its result is neither true nor false, there is no retry, and an
// error says why.
func TestRetryExpressionsThatFailGiveNoRetry(t *testing.T) {
	for _, row := range []struct{ claim, source, want string }{
		{"a missing parameter is neither true nor false", "tasks.flaky.outputs.parameters.weight", "its result is <nil>, but must be true or false"},
		{"a number is neither", "tasks.flaky.outputs.parameters.wait", "its result is 2, but must be true or false"},
		{"a text is neither", "tasks.flaky.outputs.parameters.name", `its result is "a"`},
		{"TRUE is not true", `"TRUE"`, `its result is "TRUE"`},
		{"the phase is neither", "tasks.flaky.phase", `its result is "Failed"`},
		{"a comparison with nil", "tasks.flaky.outputs.parameters.weight > 1", "invalid operation: <nil> > int"},
		{"a text that is not a number", "int(tasks.flaky.msg) == 1", "invalid operation: int(GET /a"},
		{"a member of nil", "tasks.flaky.outputs.parameters.weight.x == 1", "cannot fetch x from <nil>"},
		{"past the end of a list", "tasks.flaky.outputs.parameters.list[9] == 1", "index out of range"},
		{"a number in a map of names", "5 in tasks.flaky.outputs.parameters.deep", "reflect.Value.MapIndex"},
		{"a sum of text and number", "tasks.flaky.outputs.parameters.name + 1 == 2", "invalid operation: string + int"},
		{"a division by zero", "tasks.flaky.code % (tasks.flaky.code - 75) == 0", "divide by zero"},
		{"a pattern for a number", `tasks.flaky.outputs.parameters.wait matches "2"`, "interface conversion"},
		{"a number as a condition", "tasks.flaky.outputs.parameters.wait and true", "interface conversion"},
	} {
		got, err := EvaluateRetry("flaky", row.source, flaky)
		if got || err == nil || errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("%s: %s = %v, %v, want no retry and an error that is not ErrInvalid", row.claim, row.source, got, err)
			continue
		}
		if text := err.Error(); !strings.HasPrefix(text, "the retry expression cannot be evaluated, so there is no retry: ") || !strings.Contains(text, row.want) ||
			len(text) > 400 || strings.Contains(text, "\n") {
			t.Errorf("%s: the error of %s is %q, want %q in one line", row.claim, row.source, text, row.want)
		}
	}
}

// Only the parameters that an expression reads count against the limits.
func TestTooLargeParametersAreNotRead(t *testing.T) {
	cycle := map[string]any{}
	cycle["again"] = cycle
	deep := any("x")
	for range 12 {
		deep = []any{deep}
	}
	parameters := map[string]any{
		"small": 1.0, "text": strings.Repeat("x", maxVisible+1), "half": strings.Repeat("x", maxVisible/2), "rest": strings.Repeat("y", maxVisible/2+1),
		"list": make([]any, maxValues), "names": map[string]any{strings.Repeat("n", maxVisible+1): nil}, "cycle": cycle, "deep": deep,
		"time": time.Now(), "error": errors.New("x"), "function": func() bool { return true }, "typed": []string{"x"},
	}
	const tooMuch, odd = "have more than 4096 bytes, 1000 values or 10 levels: make them smaller, or read fewer", ": use the types to which encoding/json decodes an object"
	for _, row := range []struct{ claim, reads, want string }{
		{"a small parameter beside large ones", "small", ""},
		{"a text of half the limit", "half", ""},
		{"a text that is read twice counts once", "half == tasks.k.outputs.parameters.half and nil != tasks.k.outputs.parameters.half", ""},
		{"a long text", "text", tooMuch},
		{"two texts that are too long together", "half == tasks.k.outputs.parameters.rest", tooMuch},
		{"a long list", "list", tooMuch},
		{"a long name", "names", tooMuch},
		{"a cycle", "cycle", tooMuch},
		{"deep lists", "deep", tooMuch},
		{"an instant has methods", "time", odd},
		{"an error has methods", "error", odd},
		{"a function", "function", odd},
		{"a list that JSON does not make", "typed", odd},
	} {
		got, err := EvaluateRetry("k", "tasks.k.outputs.parameters."+row.reads+" != nil", Attempt{Phase: "Error", Parameters: parameters})
		if row.want == "" && (!got || err != nil) || row.want != "" && (got || err == nil || !strings.HasSuffix(err.Error(), row.want)) {
			t.Errorf("%s: %v, %v, want %q", row.claim, got, err, row.want)
		}
	}
	for _, all := range []string{"tasks.k.outputs.parameters != nil", "tasks.k.outputs.parameters[tasks.k.msg] == nil", "'x' in tasks.k.outputs.parameters"} {
		if got, err := EvaluateRetry("k", all, Attempt{Phase: "Error", Parameters: parameters}); got || err == nil {
			t.Errorf("%s = %v, %v, want an error, since it reads all of them", all, got, err)
		}
	}
}

func TestSucceededAndCancelledAttemptsAreNeverRetried(t *testing.T) {
	for _, phase := range []string{"Succeeded", "Cancelled"} {
		if got, err := EvaluateRetry("k", "true", Attempt{Phase: phase}); got || err != nil {
			t.Errorf("true for %s = %v, %v, want false", phase, got, err)
		}
	}
	if got, err := EvaluateRetry("k", "true", Attempt{Kind: "other", Phase: "Failed"}); got || err == nil {
		t.Errorf("an attempt of another kind = %v, %v, want an error", got, err)
	}
}

// An attempt that the sweep ends is known in advance, so enqueue can evaluate the expression.
func TestRetryOfATimeout(t *testing.T) {
	for _, row := range []struct {
		source string
		want   bool
	}{
		{"tasks.my-task.phase != 'Succeeded'", true},
		{"tasks.my-task.phase == 'Timeout'", true},
		{"tasks.my-task.phase in ['Error', 'Failed']", false},
		{"tasks.my-task.code == -1", true},
		{"tasks.my-task.msg == 'Task exceeded deadline'", true},
		{"tasks.my-task.outputs.parameters.x == nil", true},
		{"'x' in tasks.my-task.outputs.parameters", false},
	} {
		if got, err := EvaluateRetry("my-task", row.source, TimedOut("my-task")); err != nil || got != row.want {
			t.Errorf("%s = %v, %v, want %v", row.source, got, err, row.want)
		}
	}
}

func TestTheCacheOfExpressionsIsBounded(t *testing.T) {
	first, err := compileRetry("k", "tasks.k.code == 0")
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := compileRetry("k", "tasks.k.code == 0"); again != first {
		t.Error("an expression in the cache was compiled again")
	}
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 400 {
				n := g*300 + i // some numbers are used by two goroutines
				got, err := EvaluateRetry("k", fmt.Sprintf("tasks.k.code == %d", n), Attempt{Phase: "Error", Code: n})
				if !got || err != nil {
					t.Errorf("%d: %v, %v", n, got, err)
				}
			}
		})
	}
	all.Wait()
	compiled.Lock()
	defer compiled.Unlock()
	if n := len(compiled.expressions); n == 0 || n > maxCompiled {
		t.Errorf("%d expressions are kept, want 1 to %d", n, maxCompiled)
	}
}

func BenchmarkRetryExpression(b *testing.B) {
	for _, source := range []string{
		"tasks.flaky.phase != 'Succeeded'",
		`tasks.flaky.phase == "Timeout" or tasks.flaky.code in [75, 111] or tasks.flaky.msg matches "(?i)unavailable|refused"`,
		"tasks.flaky.outputs.parameters.wait < 3",
	} {
		e, err := compileRetry("flaky", source)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(source, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.allows(flaky); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := readRetry("flaky", "tasks.flaky.phase != 'Succeeded'"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
