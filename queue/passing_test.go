package queue_test

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
)

// raised is an error reply of Redis.
type raised string

func (e raised) Error() string { return string(e) }
func (raised) RedisError()     {}

// refusing makes the next calls of scripts fail.
type refusing struct {
	with error
	left int
}

func (f *refusing) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f *refusing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if lua.IsVerb(cmd.Name()) && f.left > 0 {
			f.left--
			return f.with
		}
		return next(ctx, cmd)
	}
}
func (f *refusing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestTransientErrorsAreRetried(t *testing.T) {
	for claim, test := range map[string]struct {
		err    error
		passes bool
	}{
		"a slot that no node serves":     {raised("CLUSTERDOWN Hash slot not served"), true},
		"a cluster that is down":         {raised("CLUSTERDOWN The cluster is down"), true},
		"a slot that moves":              {raised("TRYAGAIN Multiple keys request during rehashing of slot"), true},
		"a master that became a replica": {raised("READONLY You can't write against a read only replica."), true},
		"a replica without its master":   {raised("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."), true},
		"a server that loads":            {raised("LOADING Redis is loading the dataset in memory"), true},
		"too few replicas":               {raised("NOREPLICAS Not enough good replicas to write."), true},
		"a script that runs long":        {raised("BUSY Redis is busy running a script."), true},
		"a connection that ended":        {io.EOF, true},
		"a server that is down":          {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, true},
		"no free connection":             {redis.ErrPoolTimeout, true},
		"a node of a cluster":            {raised("MOVED 1 127.0.0.1:1"), false}, // this client follows no redirection
		"a missing password":             {raised("NOAUTH Authentication required."), false},
		"a missing right":                {raised("NOPERM this user has no permissions"), false},
		"a client that was closed":       {redis.ErrClosed, false},
	} {
		t.Run(claim, func(t *testing.T) {
			rdb := redistest.Shared(t).Client(t)
			q := queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t)})
			f := &refusing{with: test.err, left: 3}
			rdb.AddHook(f)
			r, err := q.Enqueue(t.Context(), queue.Task{Kind: "k"})
			if !test.passes {
				if !errors.Is(err, test.err) || f.left != 2 {
					t.Errorf("error %v after %d tries, want %v after one", err, 3-f.left, test.err)
				}
				return
			}
			if err != nil || !r.New || f.left != 0 {
				t.Errorf("%+v, %v, and %d errors are left; want a new task at the fourth try", r, err, f.left)
			}
		})
	}
}
