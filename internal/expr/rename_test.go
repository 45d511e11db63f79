package expr

import "testing"

// A renamed expression means the same, whatever characters the names have and however the task is written.
func TestRename(t *testing.T) {
	for _, test := range []struct{ source, want string }{
		{`tasks.flaky.phase != 'Succeeded'`, `tasks.pkg/run-it.phase != 'Succeeded'`},
		{`tasks.flaky.code in [1, 2] || tasks.flaky.msg contains "tasks.flaky.code"`, `tasks.pkg/run-it.code in [1, 2] || tasks.pkg/run-it.msg contains "tasks.flaky.code"`},
		{`tasks["flaky"].code == 1`, `tasks["pkg/run-it"].code == 1`},
		{`tasks[ 'flaky' ].code == 1 && tasks?.flaky.code > 0`, `tasks[ 'pkg/run-it' ].code == 1 && tasks.pkg/run-it.code > 0`},
		{`tasks.flaky.outputs.parameters.flaky == "flaky"`, `tasks.pkg/run-it.outputs.parameters.flaky == "flaky"`},
		{`tasks.flaky2.code == 1`, `tasks.flaky2.code == 1`},
	} {
		got := RenameTask("flaky", "pkg/run-it", test.source)
		if got != test.want {
			t.Errorf("%s becomes %s, want %s", test.source, got, test.want)
		}
		if was, is := CheckRetry("flaky", test.source), CheckRetry("pkg/run-it", got); (was == nil) != (is == nil) {
			t.Errorf("%s: %v; %s: %v", test.source, was, got, is)
		}
	}
}
