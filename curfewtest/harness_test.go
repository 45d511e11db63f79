package curfewtest_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/curfew-dev/curfew/curfewtest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/worker"
)

func TestMain(m *testing.M) {
	redistest.Main(m)
	if left := leaked(); left != "" {
		fmt.Fprintln(os.Stderr, "FAIL: goroutines are left behind after all tests have ended:\n\n"+left)
		os.Exit(1)
	}
}

// leaked returns the goroutines of Curfew, the client and the server that have not ended within 10 s.
func leaked() string {
	for patience := time.Now().Add(10 * time.Second); ; {
		buffer := make([]byte, 1<<20)
		buffer = buffer[:runtime.Stack(buffer, true)]
		var left []string
		for _, stack := range strings.Split(string(buffer), "\n\n")[1:] { // the first is this one
			if strings.Contains(stack, "curfew-dev") || strings.Contains(stack, "miniredis") || strings.Contains(stack, "go-redis") {
				if !strings.Contains(stack, "testing.(*T).Run") {
					left = append(left, stack)
				}
			}
		}
		if len(left) == 0 || time.Now().After(patience) {
			return strings.Join(left, "\n\n")
		}
		time.Sleep(5 * time.Millisecond) // sleeps: the end of a goroutine sends no signal
	}
}

// both runs a test on the embedded server, in and out of a bubble of testing/synctest, and on a real server.
func both(t *testing.T, test func(t *testing.T, config curfewtest.Config)) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		test(t, curfewtest.Config{})
	})
	t.Run("bubble", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { test(t, curfewtest.Config{}) })
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, curfewtest.Config{Client: redistest.Shared(t).Client(t)})
	})
}

// spy is a test that records what is reported to it.
type spy struct {
	testing.TB
	mu   sync.Mutex
	said []string
}

func (s *spy) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, text)
}

func (s *spy) Error(args ...any)                 { s.say("error: " + fmt.Sprint(args...)) }
func (s *spy) Errorf(format string, args ...any) { s.say("error: " + fmt.Sprintf(format, args...)) }
func (s *spy) Fatal(args ...any)                 { s.say("fatal: " + fmt.Sprint(args...)); runtime.Goexit() }
func (s *spy) Fatalf(format string, args ...any) { s.Fatal(fmt.Sprintf(format, args...)) }
func (s *spy) FailNow()                          { s.Fatal("FailNow") }

// spied returns what a stage reports to its test.
func spied(t *testing.T, config curfewtest.Config, test func(c *curfewtest.Stage)) string {
	t.Helper()
	s := &spy{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		test(curfewtest.New(s, config))
	}()
	<-ended
	return strings.Join(s.said, "\n")
}

func raw(f func(ctx context.Context) error) worker.Handler {
	return func(ctx context.Context, _ []byte) ([]byte, error) { return nil, f(ctx) }
}

func succeed(context.Context, []byte) ([]byte, error) { return []byte("done"), nil }

// kinds returns the kinds of the tasks that ran.
func kinds(runs []*curfewtest.Run) (kinds []string) {
	for _, r := range runs {
		kinds = append(kinds, r.Kind)
	}
	return kinds
}

func task(kind string) queue.Task { return queue.Task{Kind: kind} }
