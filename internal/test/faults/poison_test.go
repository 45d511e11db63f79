package faults

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// poisons are ways in which another program can ruin a record.
var poisons = []func(s *stage, id string) error{
	put("spec", "garbage"),
	put("state", "garbage"),
	list("spec"),
	list("state"),
	func(s *stage, id string) error {
		return s.Redis.Del(s.Context(), s.Key("spec:"+id), s.Key("state:"+id)).Err()
	},
	func(s *stage, id string) error {
		return errors.Join(s.Redis.Del(s.Context(), s.Key("spec:"+id)).Err(), put("state", "PENDING - - - - - -\n\n")(s, id))
	},
	put("spec", "1 - -\n\n"), // without queue, kind and created_at
	put("state", " 1 w 1 - - -\n\n"),
	put("state", "BROKEN 1 w 1 - - -\n\n"),
	put("state", "PENDING many - - - - -\n\n"),
	put("state", "PENDING - - - - - -\nlimit_at=\x00\n\n"),
	put("state", "PENDING - - - - - -\nlimit_at=1"),
	put("spec", "quick default 1 tomorrow -\n\n"),
	func(s *stage, id string) error {
		return s.replace("payload:"+id, func(p redis.Pipeliner, key string) { p.HSet(s.Context(), key, "a", "b") })
	},
}

// put returns a poison that replaces the spec or the state of a task by a text.
func put(of, text string) func(s *stage, id string) error {
	return func(s *stage, id string) error { return s.Redis.Set(s.Context(), s.Key(of+":"+id), text, 0).Err() }
}

// list returns a poison that replaces the spec or the state by a key of another type.
func list(of string) func(s *stage, id string) error {
	return func(s *stage, id string) error {
		return s.replace(of+":"+id, func(p redis.Pipeliner, key string) { p.RPush(s.Context(), key, "x", "y") })
	}
}

// replace replaces a key in a transaction: a call between the two commands could create the key again.
func (s *stage) replace(name string, by func(p redis.Pipeliner, key string)) error {
	_, err := s.Redis.TxPipelined(s.Context(), func(p redis.Pipeliner) error {
		p.Del(s.Context(), s.Key(name))
		by(p, s.Key(name))
		return nil
	})
	return err
}

// Some records are ruined, in line, delayed and due. All other tasks end once, without delay.
func TestRuinedRecordsHoldUpNoOther(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := newStage(t, server.Addr, server.Addr)
	stopFleet := s.fleet(2, 6*time.Second)
	stopClerk := s.Run(s.clerk)
	stopProducer := s.Run(func(ctx context.Context) error { return s.produce(ctx, 10*time.Millisecond) })
	ruined := map[string]bool{}
	for range harness.Times(2, 3, 60) {
		for _, poison := range poisons {
			for _, task := range []queue.Task{
				{Kind: "quick", Delay: 50 * time.Millisecond},                                            // put in line by the sweep, then fetched
				{Kind: "quick", Delay: 50 * time.Millisecond, Timeout: time.Minute},                      // and with a deadline
				{Kind: "ruined", Queue: "nobody", Timeout: 80 * time.Millisecond},                        // ended by the sweep
				{Kind: "ruined", Queue: "nobody", QueueTimeout: 80 * time.Millisecond, MaxRetries: 1000}, // by its limit
			} {
				task.Payload = bytes.Repeat([]byte("x"), 300) // is stored in its own key
				tasks := []queue.Task{task}
				r := s.hand(s.Q, tasks)[0]
				if err := errors.Join(r.Err, poison(s, r.ID)); err != nil {
					t.Fatal(err)
				}
				ruined[r.ID] = true
			}
		}
		harness.Pass(50 * time.Millisecond) // sleeps: the load
	}
	stopProducer()
	await.Until(t, "all others have ended", func() bool {
		good := slices.DeleteFunc(s.Ledger.Copy().Tasks, func(id string) bool { return ruined[id] })
		records, err := s.Q.GetAll(s.Context(), good)
		return err == nil && !slices.ContainsFunc(records, func(r *queue.Record) bool { return r == nil || !r.Status.Ended() })
	})
	stopClerk()
	stats := stopFleet()
	s.untroubled()
	s.buried(ruined)
	s.accountWithout(ruined)
	t.Logf("%d tasks, %d of them ruined; the fleet: %+v", len(s.Ledger.Copy().Tasks), len(ruined), stats)
}

// buried removes the keys and index entries of ruined tasks, as an operator does after reading the
// audit and the key "broken".
func (s *stage) buried(ruined map[string]bool) {
	s.Helper()
	for _, clock := range []string{"deadlines", "limits", "delayed", "draining", "retained", "broken", "ready:default", "ready:nobody", "dead:default", "dead:nobody"} {
		for id := range ruined {
			s.Redis.ZRem(s.Context(), s.Key(clock), id)
		}
	}
	for id := range ruined {
		s.Redis.Del(s.Context(), s.Key("spec:"+id), s.Key("state:"+id), s.Key("payload:"+id), s.Key("result:"+id), s.Key("children:"+id))
	}
}

// accountWithout is like account without the tasks of ids. It does not compare the counters,
// because they include these tasks.
func (s *stage) accountWithout(ids map[string]bool) {
	s.Helper()
	events := slices.DeleteFunc(s.Events(s.Q), func(e harness.Event) bool { return ids[e.ID] })
	fates, wrong := fold(events)
	for _, why := range wrong {
		s.Complain("the events contradict each other: %s", why)
	}
	for _, id := range s.Ledger.Copy().Tasks {
		if f := fates[id]; !ids[id] && (f == nil || f.ends != 1 || !f.is(s.Record(id))) {
			s.Complain("%s: the events give %+v, the record is %+v", id, f, s.Record(id))
		}
	}
	s.Audit(s.Q)
}
