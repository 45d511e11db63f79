package expr

import (
	"errors"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/refusal"
)

func TestRetryExpressionsThatAreRefusedSayWhatToWrite(t *testing.T) {
	for _, row := range []struct{ source, want string }{
		{"", "is empty"},
		{" \n", "is empty"},
		{"tasks.other.phase == 'Failed'", "tasks.other is another task, but an expression can read only its own: write tasks.my-task"},
		{"tasks.my-task2.code == 1", "tasks.my is another task"},
		{`tasks["my-task2"].code == 1`, "tasks.my-task2 is another task"},
		{`tasks[tasks.my-task.msg].code == 1`, "is another task"},
		{"tasks.my-task.color == 1", `at character 15: a task has no "color": write tasks.my-task.phase, .code, .msg or .outputs.parameters.<name>`},
		{"tasks.my-task.outputs.artifacts.x == 1", `a task has no "artifacts"`},
		{"tasks.my-task.outputs == nil", "a member is missing"},
		{"tasks.my-task == nil", "a member is missing"},
		{"tasks == nil", "a member is missing"},
		{"tasks.my-task", "a member is missing"},
		{"phase == 'Failed'", `"phase" is not known: write tasks.my-task.phase`},
		{"tasks.my-task.phase == Failed", `"Failed" is not known`},
		{"tasks.my-task.phase == 'failed'", `no attempt has the phase "failed": write "Failed", "Error" or "Timeout"`},
		{"tasks.my-task.phase in ['Failed', 'TIMEOUT']", `no attempt has the phase "TIMEOUT"`},
		{"tasks.my-task.phase == 1", "mismatched types string and int"},
		{"tasks.my-task.code contains '7'", "mismatched types int and string"},
		{"tasks.my-task.phase.x == 1", "has no field"},
		{"tasks.my-task.phase.code == 1", "has no field"},
		{"tasks.my-task.code", "its result is of type int, but must be true or false: write a comparison"},
		{"1", "must be true or false"},
		{"1.5 + 1", "must be true or false"},
		{"tasks.my-task.outputs.parameters", "must be true or false"},
		{"not tasks.my-task.code", "mismatched type int"},
		{"tasks.my-task.code ==", "unexpected token EOF: write a condition such as tasks.my-task.code == 75"},
		{"tasks.my-task.code == 1 tasks.my-task", `unexpected token Identifier("tasks.my-task")`},
		{"tasks.my-task.code = 75", "unexpected token Operator"},
		{"tasks.my-task.code === 75", "write a condition"},
		{"'open", "literal not terminated"},
		{"tasks.my-task.code == 99999999999999999999", "invalid integer literal"},
		{"tasks.my-task.msg matches '('", "missing closing ): `(`: write a Go regular expression"},
		{"tasks.my-task.msg matches tasks.my-task.msg", "the right side of matches must be a pattern in quotes"},
		{`tasks.my-task.msg matches "\\pL"`, `a pattern cannot contain \p or \x{…}`},
		{`tasks.my-task.msg matches "(?i)ö"`, "flags only if it is ASCII"},
		{"tasks.my-task.msg + 'x' == 'y'", "+ adds numbers only: write int(…)"},
		{"tasks.my-task.outputs.parameters.a + tasks.my-task.outputs.parameters.b == 3", "+ adds numbers only"},
		{"string(tasks.my-task.outputs.parameters) == 'x'", "the type of its argument is not known"},
		{"[1, 2] == [1, 2]", "a list is allowed only on the right side of in"},
		{"tasks.my-task.code in [tasks.my-task.code]", "a list can contain only numbers and texts"},
		{"len(1..5) == 5", "a range is allowed only on the right side of in"},
		{"tasks.my-task.code in 1..2000", "at most 1000 greater"},
		{"tasks.my-task.code in -5..5", "0 or more"},
		{"tasks.my-task.code in 1..tasks.my-task.code", "a range must go from a number"},
		{"{a: 1}.a == 1", "maps"},
		{"let x = 1; x == 1", "variables"},
		{"true; false", "sequences"},
		{"all([1], # > 0)", `no function "all": use abs`},
		{"now() == now()", `no function "now"`},
		{"repeat('x', 9) == 'x'", `no function "repeat"`},
		{"fetch('http://localhost') == 1", `no function "fetch"`},
		{"tasks.my-task.msg.Len() == 1", "there are no methods"},
		{"5 in tasks.my-task.outputs.parameters", "cannot use int as type string in map key"},
		{"len() == 1", "invalid number of arguments (expected 1, got 0)"},
		{"$env == nil", "$ at byte 1 is not part of the language here"},
		{"b'x' == b'x'", "not allowed in retry expressions"},
		{"true // yes", "a comment begins at byte 6: leave it out"},
		{"true /* yes */", "a comment begins at byte 6: leave it out"},
		{"`a\nb` == 'x'", `the text at byte 1 contains a line break: write \n`},
		{"true\x00", `the control character '\x00' at byte 5`},
		{"'\x1b[2J' == 'x'", "control character"},
		{"'\xff' == 'x'", "not UTF-8"},
		{"true" + strings.Repeat(" ", 5000), "5004 bytes, the limit is 4096"},
		{"true" + strings.Repeat(" or true", 200), "exceeds maximum allowed nodes"},
	} {
		_, err := compileRetry("my-task", row.source)
		var got *refusal.InvalidError
		if !errors.As(err, &got) || got.Field != "retry expression" || !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("%.80q gives %v, want an InvalidError of the retry expression", row.source, err)
			continue
		}
		if !strings.Contains(got.Why, row.want) || len(got.Why) > 500 || strings.ContainsAny(got.Why, "\n\x00\x1b") {
			t.Errorf("%.80q\ngives %q\n want %q in a line of 500 bytes", row.source, got.Why, row.want)
		}
	}
	if _, err := compileRetry("my task", "true"); !errors.Is(err, refusal.ErrInvalid) {
		t.Errorf("an invalid kind gives %v, want ErrInvalid", err)
	}
}
