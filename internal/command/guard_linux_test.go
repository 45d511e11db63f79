package command

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/processgroup"
	"github.com/curfew-dev/curfew/internal/test/await"
)

// This process ends after it has started a command, and before it has told the guard which group that is. What
// the command has started is ended too. So it is if the guard was killed meanwhile.
func TestTheGuardFindsACommandThatHasJustStarted(t *testing.T) {
	t.Setenv("CURFEW_TEST_GUARD", "yes") // see TestMain
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprint("the guard was killed: ", killed), func(t *testing.T) {
			g, err := StartGuard(slog.New(slog.DiscardHandler), nil, os.Args[0])
			if err != nil {
				t.Fatal(err)
			}
			g.begin()
			if killed {
				old := g.Pid()
				syscall.Kill(old, syscall.SIGKILL)
				await.Until(t, "another guard", func() bool { return g.Pid() != old })
			}
			command, err := start("/bin/sh", []string{"-c", "sleep 60 & wait"}, append(os.Environ(), g.variable()), nil, io.Discard, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			defer command.finish()
			// That there is a child is seen in the list of processes only.
			await.Until(t, "the command has a child", func() bool { return len(processgroup.Marked(g.variable())) == 2 })
			g.Close()
			select {
			case <-command.ended:
			case <-time.After(await.Patience):
				t.Error("the command runs")
			}
			await.Until(t, "no process of the group is left", func() bool { return !command.alive() })
		})
	}
}
