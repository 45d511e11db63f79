package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/await"
)

func TestDemoEndsAHungTaskOnTime(t *testing.T) {
	t.Parallel()
	inTime(t, func(slower time.Duration) error {
		code, out, errs := curfew(t, "demo", "--timeout", min(slower*300*time.Millisecond, time.Minute).String())
		for _, want := range []string{"COMPLETED", "TIMEOUT", "Task exceeded deadline", "ms after its deadline"} {
			if code != 0 || errs != "" || !strings.Contains(out, want) {
				return lateIf(strings.Contains(errs, "no worker had taken it") || promises.MatchString(errs), fmt.Errorf("exit %d, stderr %q, want %q in\n%s", code, errs, want, out))
			}
		}
		return nil
	})
}

// promises matches what a scene says of a promise that a busy machine can break.
var promises = regexp.MustCompile(` late, and must |did not happen within|the agent got \d+ results, want 16|the task \S+ (was|completed) .*(want enqueued, started|had woken)`)

func TestAnInterruptEndsTheDemo(t *testing.T) {
	t.Parallel()
	r := start(t, "demo --timeout 1m")
	r.until(t, "started; it will ignore the end of its context")
	r.interrupt()
	if code := await.Receive(t, r.ended, "the end of the demo"); code != app.ExitInterrupted || r.errs.String() != "curfew: interrupted\n" {
		t.Errorf("exit %d, stderr %q, want exit %d", code, r.errs.String(), app.ExitInterrupted)
	}
}

// Scenes keep their promises on both servers, and leave nothing on a real one. On a busy machine a scene can find that a promise about time
// was broken, and that not all tasks were answered in time.
func TestScenes(t *testing.T) {
	t.Parallel()
	rdb, url := database(t)
	broken := false // a scene that breaks a promise keeps its namespace
	for _, row := range []struct {
		scene   string
		timeout time.Duration
		want    string
	}{
		{"crash", time.Second, `(?s)killed the process \d+ .*TIMEOUT.*given back.*completed`},
		{"fanout", 300 * time.Millisecond, `(?s)with 16 of 20 tasks.*cancelled.*woke +fanout`},
	} {
		for _, on := range []string{"", "--redis " + url} {
			t.Run(row.scene+on, func(t *testing.T) {
				inTime(t, func(slower time.Duration) error {
					v := invocation{args: strings.Fields("demo " + row.scene + " --timeout " + min(slower*row.timeout, time.Minute).String() + " " + on), alone: row.scene == "crash"}
					v.env = []string{"CURFEW_REDIS_URL=redis://" + nobody, "REDIS_URL=redis://" + nobody} // the scene has a server of its own
					e := v.run(t)
					kept := strings.Contains(e.out, "The scene kept its promises")
					if e.code != 0 || !regexp.MustCompile(row.want).MatchString(e.out) || !kept || e.errs != "" {
						broken = broken || !kept
						// A machine that is too busy for the timeout also mixes up the order in which all this happens.
						return lateIf(promises.MatchString(e.errs) || e.code == 0 && kept && e.errs == "", fmt.Errorf("exit %d, stderr %s\n%s\nwant %s", e.code, e.errs, e.out, row.want))
					}
					return nil
				})
			})
		}
	}
	if keys := rdb.Keys(t.Context(), "*").Val(); len(keys) > 0 && !broken {
		t.Errorf("the scenes left %q", keys)
	}
}
