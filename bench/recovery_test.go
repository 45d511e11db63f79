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

	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/queue"
)

const holding = "CURFEW_BENCH_HOLDS" // address, namespace, queue and lease, in words

func TestRecoveryOfAKilledWorkerTakesItsLease(t *testing.T) {
	if words := strings.Fields(os.Getenv(holding)); len(words) == 4 {
		go func() {
			io.Copy(io.Discard, os.Stdin)
			os.Exit(1)
		}()
		lease, _ := time.ParseDuration(words[3])
		rdb, err := queue.Connect("redis://" + words[0])
		if err == nil {
			err = Hold(context.Background(), rdb, os.Stdout, words[1], words[2], lease)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	server := redistest.Start(t)
	rdb, err := queue.Connect("redis://" + server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	r, err := Recovery(t.Context(), rdb, 3, time.Second, func(namespace, line string, lease time.Duration) *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %v", holding, server.Addr, namespace, line, lease))
		return cmd
	})
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
