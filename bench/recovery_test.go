package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

const holding = "CURFEW_BENCH_HOLDS" // system, URL, namespace, queue and lease, with spaces between

// holdIfAsked makes this process a worker that holds a task until a test kills it, if the
// environment says so. Otherwise it returns.
func holdIfAsked() {
	words := strings.Fields(os.Getenv(holding))
	if len(words) != 5 {
		return
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	lease, _ := time.ParseDuration(words[4])
	s := map[string]System{"curfew": Curfew(lease), "asynq": Asynq(), "floor": Floor()}[words[0]]
	fmt.Fprintln(os.Stderr, Hold(context.Background(), s, Place{words[1], words[2]}, words[3], os.Stdout))
	os.Exit(1)
}

// holder returns a Holder whose processes run this test binary.
func holder(at Place, lease time.Duration) Holder {
	return func(system, line string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %s %v", holding, system, at.URL, at.Namespace, line, lease))
		return cmd
	}
}

func TestHoldNeedsARecoverer(t *testing.T) {
	only := struct{ System }{Curfew(0)} // without the methods of Recoverer
	if err := Hold(t.Context(), only, Place{}, "line", io.Discard); err == nil || err.Error() != "curfew is not a Recoverer" {
		t.Errorf("Hold = %v", err)
	}
}

func TestRecoveryOfAKilledWorkerTakesItsLease(t *testing.T) {
	server := redistest.Start(t)
	rdb, err := queue.Connect("redis://" + server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	at := Place{"redis://" + server.Addr, "bench"}
	r, err := Recovery(t.Context(), rdb, at, 3, time.Second, holder(at, time.Second))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Figures {
		if f.Value <= 0 || f.Value > 10 {
			t.Errorf("%s is %v s for a lease of 1 s", f.Name, f.Value)
		}
	}
	if len(r.Figures) != 3 {
		t.Errorf("%v", r)
	}
	t.Log(r)
}
