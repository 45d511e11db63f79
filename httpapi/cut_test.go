package httpapi

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// cutter is a hook that lets some commands pass, and fails all further ones until it is told otherwise.
type cutter struct {
	left      atomic.Int64 // commands that may pass
	unbounded atomic.Int64 // commands without a deadline
}

func (c *cutter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// cut returns an error that is not repeated, so that the test need not wait.
func (c *cutter) cut(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		c.unbounded.Add(1)
	}
	if c.left.Add(-1) < 0 {
		return redis.ErrClosed
	}
	return nil
}

func (c *cutter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := c.cut(ctx); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (c *cutter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := c.cut(ctx); err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return err
		}
		return next(ctx, cmds)
	}
}

const plentiful = 1 << 40

// Whichever of its reads fails, a request is answered with 503: no route takes the failure for a task, a version or a worker
// that does not exist. And each read has the deadline of the request.
func TestNoFailedReadLooksLikeAnAnswer(t *testing.T) {
	t.Parallel()
	c := &cutter{}
	c.left.Store(plentiful)
	rdb := redistest.Shared(t).Client(t)
	s := newStageOn(t, rdb, redistest.Namespace(t), Config{})
	rdb.AddHook(c)

	s.want(201, "POST", "tasks", `{"kind":"k","id":"0-TASK","queue":"mail"}`)
	s.want(201, "PUT", "flows", reviewed, yaml)
	// A run whose version is not known: it has ended without children.
	s.want(201, "PUT", "flows", sampleDefinition)
	run := s.want(201, "POST", "flows/reviewed/runs", `{"parameters":{"page":1}}`).text("id")
	s.runFlows()
	s.want(200, "POST", "tasks/"+run+"/cancel", "")
	live := s.want(201, "POST", "flows/reviewed/runs", `{"parameters":{"page":1}}`).text("id")
	s.runFlows()

	for _, r := range table() {
		if r.Stream || r.Method != http.MethodGet {
			continue
		}
		for _, id := range []string{"0-TASK", run, live, "reviewed"} {
			path, _ := sample(r)
			path = strings.Replace(path, "0-NOSUCHTASK", id, 1)
			t.Run(r.ID+" "+id, func(t *testing.T) {
				for n := range int64(100) {
					c.unbounded.Store(0)
					c.left.Store(n)
					a := s.do(r.Method, path, "")
					reached := c.left.Swap(plentiful) < 0
					if unbounded := c.unbounded.Load(); unbounded > 0 {
						t.Errorf("%d commands of GET %s have no deadline", unbounded, path)
					}
					if !reached {
						return
					}
					if a.status != 503 && a.status != 504 {
						t.Errorf("GET %s, when all commands after %d fail: %d %s", path, n, a.status, a.body)
					}
				}
				t.Errorf("GET %s makes more than 100 commands", path)
			})
		}
	}
}
