package flow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/flow"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// beforeWaits calls before before each wait of an agent, and not again when a wait without a reply is repeated.
type beforeWaits struct {
	queuetest.Around // for the other methods of a hook
	before           func()
	last             string
}

func (h *beforeWaits) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); len(args) > 1 && strings.HasSuffix(fmt.Sprint(args[1]), "_suspend") && fmt.Sprint(args) != h.last {
			h.last = fmt.Sprint(args)
			h.before()
		}
		return next(ctx, cmd)
	}
}

// A run makes a checkpoint after so many waits, and a replay must make it before the same wait. Here the process that has made a
// checkpoint continues for many waits that are over at once, since a node ends before each of them. At one of the next waits it stops, and
// a replay continues from the checkpoint.
func TestAReplayMakesItsCheckpointsBeforeTheSameWaits(t *testing.T) {
	const n = 30 // nodes of each of two chains
	var nodes []string
	for i := range n {
		for _, chain := range []string{"a", "b"} {
			after := ""
			if i > 0 {
				after = fmt.Sprintf(`,"dependencies":["%s%d"]`, chain, i-1)
			}
			nodes = append(nodes, fmt.Sprintf(`{"name":"%s%d","executor":{"type":"wait"}%s}`, chain, i, after))
		}
	}
	for stop := 38; stop < 45; stop++ {
		t.Run(fmt.Sprint("it stops at wait ", stop), func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Shared(t).Client(t)
			s := newStageOn(t, rdb)
			s.put(dag("chains", nodes...))
			id := s.enqueue("flow.chains", "")
			s.drain()
			ended := 0
			end := func() {
				if _, err := s.q.Resolve(s.ctx, fmt.Sprintf("%s.%c%d", id, "ab"[ended%2], ended/2), []byte(`{}`)); err != nil {
					t.Error(err)
				}
				ended++
			}
			rdb.AddHook(&beforeWaits{before: func() {
				if ended < stop {
					end()
				}
			}})
			for ended < 2*n {
				end()
				s.drain()
			}
			if r, err := flow.Read(s.ctx, s.q, id, false); err != nil || r.Phase != flow.Succeeded {
				t.Errorf("it ends with %v: %s", err, r.Record.Error)
			}
		})
	}
}
