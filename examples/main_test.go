// Package examples_test runs the example programs against a real Redis. Programs in Go are run by the commands in their
// comments. Programs in the folders python, node and shell run beside producers and workers in Go. They need Python and
// Node, so their tests are skipped unless CURFEW_DOORS is 1: `make doors` installs what they need, and runs them.
package examples_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/curfew-dev/curfew/internal/test/redistest"
)

func TestMain(m *testing.M) {
	redistest.AtOnce(8) // they mostly wait for interpreters to start, and for deadlines
	redistest.Main(m)
}

// A reader should see a whole program on one or two screens.
func TestProgramsAreShort(t *testing.T) {
	for pattern, most := range map[string]int{"python/*.py": 59, "node/*.js": 74, "shell/*.sh": 51, "*/main.go": 119} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) < 3 {
			t.Fatal(pattern, names, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
			if len(lines) > most {
				t.Errorf("%s has %d lines, and may have %d", name, len(lines), most)
			}
			for i, line := range lines {
				if n := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); n > 130 || n > 120 && !strings.HasSuffix(name, ".sh") {
					t.Errorf("%s:%d has %d columns", name, i+1, n)
				}
			}
		}
	}
}

func TestOtherLanguages(t *testing.T) {
	if os.Getenv("CURFEW_DOORS") != "1" {
		t.Skip("CURFEW_DOORS is not 1: these tests need Python and Node, which `make doors` installs")
	}
	for name, test := range map[string]func(*testing.T){
		"each worker runs the tasks of each producer":           eachWorkerRunsTheTasksOfEachProducer,
		"a task of a killed worker runs elsewhere":              aTaskOfAKilledWorkerRunsElsewhere,
		"a task of a killed worker ends on its deadline":        aTaskOfAKilledWorkerEndsOnItsDeadline,
		"a task whose handler hangs ends on time":               aTaskWhoseHandlerHangsEndsOnTime,
		"an attempt stops when its time is up":                  anAttemptStopsWhenItsTimeIsUp,
		"an attempt stops when its task is cancelled":           anAttemptStopsWhenItsTaskIsCancelled,
		"SIGTERM lets a task end":                               sigtermLetsATaskEnd,
		"a second SIGTERM ends a worker at once":                aSecondSIGTERMEndsAWorkerAtOnce,
		"a worker ends while Redis is away":                     aWorkerEndsWhileRedisIsAway,
		"a worker that is asked to stop ends":                   aWorkerThatIsAskedToStopEnds,
		"a task without a handler is given back":                aTaskWithoutAHandlerIsGivenBack,
		"an error is retried":                                   anErrorIsRetried,
		"programs go on when functions or the server were gone": programsGoOnWhenFunctionsOrTheServerWereGone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}
