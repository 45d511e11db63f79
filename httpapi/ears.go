package httpapi

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
)

// shard is what can be silent alone: a partition in a cluster, otherwise the whole namespace.
type shard struct {
	partition int
	ears      ears
}

// listen notes each reply that the client of the namespace gets. Many requests at once can keep the empty call waiting for a
// connection, although Redis replies to the others.
func (s *space) listen(q *queue.Queue) {
	s.listens.Do(func() {
		hook := &replyHook{q: q, shards: []*shard{{}}}
		if _, is := q.Client().(*redis.ClusterClient); is {
			for p := 1; p < q.Partitions(); p++ {
				hook.shards = append(hook.shards, &shard{partition: p})
			}
		}
		s.shards = hook.shards
		q.Client().AddHook(hook)
		s.noteChanges(q)
	})
}

// ears notes when replies came. The zero value has heard nothing.
type ears struct {
	heard   moment // any reply
	refused moment // Redis refused a write, because it is a replica
	unable  moment // Redis refused a read too: it loads its data, or has lost its master
}

// moment is an instant that goroutines share.
type moment struct{ ns atomic.Int64 }

func (m *moment) now() { m.ns.Store(time.Now().UnixNano()) }

func (m *moment) forget() { m.ns.Store(0) }

// within reports whether it was less than d ago.
func (m *moment) within(d time.Duration) bool { return time.Since(time.Unix(0, m.ns.Load())) < d }

func (e *ears) note(err error) {
	switch {
	case redis.HasErrorPrefix(err, "LOADING"), redis.HasErrorPrefix(err, "MASTERDOWN"), redis.HasErrorPrefix(err, "CLUSTERDOWN"):
		e.unable.now()
	case redis.HasErrorPrefix(err, "READONLY"):
		e.refused.now()
		e.heard.now() // it can be read
	case err == nil || lua.Raised(err) || errors.Is(err, redis.Nil):
		e.heard.now()
	}
}

// replyHook is a hook that notes the replies to the calls of each shard.
type replyHook struct {
	q      *queue.Queue
	shards []*shard
}

func (h *replyHook) note(cmd redis.Cmder, err error) {
	if len(h.shards) == 1 {
		h.shards[0].ears.note(err)
		return
	}
	args := cmd.Args()
	if len(args) < 4 { // no call of a script: its name, the number of keys and the key come first
		return
	}
	for _, shard := range h.shards {
		if args[3] == h.q.Root(shard.partition) {
			shard.ears.note(err)
		}
	}
}

// DialHook changes nothing.
func (h *replyHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook notes the reply to a command.
func (h *replyHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		h.note(cmd, err)
		return err
	}
}

// ProcessPipelineHook notes the replies to several commands.
func (h *replyHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			h.note(cmd, cmd.Err())
		}
		return err
	}
}
