package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
)

// oneInTime fails the test unless one of six tries keeps a promise about time. A busy machine can stop a process for longer than is
// promised, and no program can prevent that. Code that is itself too slow fails all six tries.
func oneInTime(t *testing.T, try func() error) {
	t.Helper()
	var err error
	for n := range 6 {
		if err = try(); err == nil {
			return
		}
		t.Logf("try %d: %v", n+1, err)
	}
	t.Errorf("none of six tries kept its promise, the last one: %v", err)
}

func TestDemoEndsAHungTaskOnTime(t *testing.T) {
	t.Parallel()
	oneInTime(t, func() error {
		code, out, errs := curfew(t, "demo", "--timeout", "300ms")
		for _, want := range []string{"COMPLETED", "TIMEOUT", "Task exceeded deadline", "ms after its deadline"} {
			if code != 0 || errs != "" || !strings.Contains(out, want) {
				return fmt.Errorf("exit %d, stderr %q, want %q in\n%s", code, errs, want, out)
			}
		}
		return nil
	})
}

func TestAnInterruptEndsTheDemo(t *testing.T) {
	t.Parallel()
	r := start(t, "demo --timeout 1m")
	r.until(t, "started; it will ignore the end of its context")
	r.interrupt()
	if code := await.Receive(t, r.ended, "the end of the demo"); code != app.ExitInterrupted || r.errs.String() != "curfew: interrupted\n" {
		t.Errorf("exit %d, stderr %q, want exit %d", code, r.errs.String(), app.ExitInterrupted)
	}
}

// Scenes keep their promises on both servers, and leave nothing on a real one.
func TestScenes(t *testing.T) {
	t.Parallel()
	curfew := built(t)
	server := redistest.Start(t)
	broken := false // a scene that breaks a promise keeps its namespace
	for _, row := range []struct{ args, want string }{
		{"crash --timeout 1s", `(?s)killed the process \d+ .*TIMEOUT.*given back.*completed`},
		{"fanout --timeout 300ms", `(?s)with 16 of 20 tasks.*cancelled.*woke +fanout`},
	} {
		for _, on := range []string{"", " --redis redis://" + server.Addr} {
			t.Run(row.args+on, func(t *testing.T) {
				oneInTime(t, func() error {
					cmd := exec.Command(curfew, strings.Fields("demo "+row.args+on)...)
					cmd.Env = append(os.Environ(), "CURFEW_REDIS_URL=redis://"+nobody, "REDIS_URL=redis://"+nobody) // the scene has a server of its own
					out, err := cmd.CombinedOutput()
					if err != nil || !regexp.MustCompile(row.want).Match(out) || !strings.Contains(string(out), "The scene kept its promises") {
						broken = true
						return fmt.Errorf("%v\n%s\nwant %s", err, out, row.want)
					}
					return nil
				})
			})
		}
	}
	if keys := server.Client(t).Keys(t.Context(), "*").Val(); len(keys) > 0 && !broken {
		t.Errorf("the scenes left %q", keys)
	}
}
