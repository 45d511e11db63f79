package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/queuetest"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// agentKeys are the keys of an agent that runs, 0-a1, and of one that waits, 0-a2.
var agentKeys = []string{
	":spec:0-a1", ":state:0-a1", ":children:0-a1", ":journal:0-a1", ":wait:0-a1", ":pending:0-a1", ":settled:0-a1", ":patience:0-a1",
	":spec:0-a2", ":state:0-a2", ":children:0-a2", ":journal:0-a2", ":wait:0-a2", ":pending:0-a2", ":settled:0-a2", ":patience:0-a2",
	":spec:0-a1.c", ":spec:0-a2.1", ":waits", ":claims:w1", ":ready:agents", ":queue:agents",
}

// agentScripts are what is called on them.
var agentScripts = []struct {
	name string
	call func(*disturbed, context.Context) (string, error)
	only func(t *testing.T, d *disturbed, answer string, err error, before string) // what it promises beyond the others
}{
	{"suspend", func(d *disturbed, ctx context.Context) (string, error) {
		_, err := d.q.Attempts().Suspend(ctx, waiting("0-a1"))
		return "", err
	}, waitsOrDoesNot},
	{"remember", func(d *disturbed, ctx context.Context) (string, error) {
		return "", d.q.Attempts().Remember(ctx, "0-a1", 1, "w1", queue.Note{Checkpoint: &queue.Checkpoint{State: []byte("s")},
			Entries: []queue.Entry{{Number: 7, Text: []byte("x")}}})
	}, doneOrNothing},
	{"recall", func(d *disturbed, ctx context.Context) (string, error) {
		_, err := d.q.Attempts().Recall(ctx, "0-a2")
		return "", err
	}, func(t *testing.T, d *disturbed, _ string, err error, before string) {
		changesNothing(t, d, nil, err, before)
	}},
	{"signal", func(d *disturbed, ctx context.Context) (string, error) {
		r, err := d.q.Signal(ctx, "0-a1", "go", []byte("x"))
		return string(r.Status), err
	}, nil},
	{"resolve", func(d *disturbed, ctx context.Context) (string, error) {
		r, err := d.q.Resolve(ctx, "0-a2.1", []byte("x"))
		return string(r.Status), err
	}, resolvesWhateverItsAgentIs},
	{"cancel", func(d *disturbed, ctx context.Context) (string, error) {
		all, err := d.q.CancelAll(ctx, []string{"0-a1", "0-a2"}, "x")
		return fmt.Sprint(all), err
	}, nil},
	{"sweep", func(d *disturbed, ctx context.Context) (string, error) {
		var swept reaper.Swept
		var err error
		for i := 0; i < 4 && err == nil; i++ {
			swept, err = reaper.Sweep(ctx, d.q, 0, "r", 100, 500*time.Millisecond)
		}
		return fmt.Sprintf("%+v", swept), err
	}, nil},
}

// waiting is a wait of an agent for a child that is there and one that it makes.
func waiting(agent string) queue.Suspension {
	return queue.Suspension{Agent: agent, Epoch: 1, Worker: "w1",
		Wait: queue.Wait{Entry: 5, Mode: queue.WaitAll, Digest: "d", Label: "l", Limit: 10 * time.Second,
			Members: []queue.Member{{ID: agent + ".c", Patience: 2 * time.Second, Mask: "oobbb"}, {ID: agent + ".n"}}},
		Note:     queue.Note{Checkpoint: &queue.Checkpoint{State: []byte("s")}, Entries: []queue.Entry{{Number: 4, Text: []byte("x")}}},
		Children: []queue.Task{{ID: agent + ".n", Kind: "k", Queue: "agents", Timeout: time.Minute}},
	}
}

// disturbAgents adds two agents to what there is: one that runs, and one that waits.
func disturbAgents(t *testing.T, d *disturbed) {
	t.Helper()
	ctx := context.Background()
	for _, id := range []string{"0-a1", "0-a2"} {
		d.accepts(t, "id", id, "kind", "k", "queue", "agents", "attempt_timeout_ms", "30000")
		d.w.Take(t, id, "agents")
		d.accepts(t, "id", id+".c", "kind", "k", "queue", "default", "role", "promise")
	}
	d.accepts(t, "id", "0-a2.1", "kind", "k", "queue", "default", "role", "promise")
	note := queue.Note{Entries: []queue.Entry{{Number: 1, Text: []byte("first")}}}
	if err := d.q.Attempts().Remember(ctx, "0-a1", 1, "w1", note); err != nil {
		t.Fatal(err)
	}
	s := waiting("0-a2")
	s.Wait.Mode = queue.WaitAnyOK
	s.Wait.Members = append(s.Wait.Members, queue.Member{ID: "0-a2.1"})
	if answer, err := d.q.Attempts().Suspend(ctx, s); answer != nil || err != nil {
		t.Fatal(answer, err)
	}
}

// What is in the way of an agent is met before anything is written of a wait; and it is
// the agent's own: what its members do is not undone by it, and others go on.
func TestAnAgentsKeyOfTheWrongType(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		library := testclock.Library(t, rdb)
		for _, s := range agentScripts {
			for _, key := range slices.Concat(agentKeys, []string{"", ":deadlines", ":limits", ":delayed", ":draining", ":retained", ":events"}) {
				t.Run(s.name+" and root"+key, func(t *testing.T) {
					d := disturb(t, rdb, library)
					disturbAgents(t, d)
					if s.name == "sweep" { // the waits are due, and the agents' attempts
						testclock.Set(t, rdb, d.q.Root(0), testclock.Start.Add(time.Minute))
					}
					d.put(t, key)
					before := d.dump(t)
					answer, err := s.call(d, context.Background())
					if err != nil && (!errors.Is(err, refusal.ErrWrongType) && !errors.Is(err, refusal.ErrBroken) || strings.Contains(err.Error(), "\n")) {
						t.Errorf("error %q, want ErrWrongType or ErrBroken on one line", err)
					}
					if s.only != nil {
						s.only(t, d, answer, err, before)
					}
					if got := d.rubbish(t, key); got != "rubbish" && mayGo(s.name, key) {
						t.Errorf("what was in the way is %q now", got)
					}
					d.rdb.Del(context.Background(), d.q.Root(0)+key)
					if key == "" {
						d.q = queuetest.Open(t, rdb, queue.Config{Namespace: "w", Library: library})
					}
					d.goesOn(t)
				})
			}
		}
	})
}

// mayGo tells whether what is in the way must still be there: what is left of a wait is
// removed with it in one piece, whatever it is.
func mayGo(script, key string) bool {
	for _, part := range []string{":wait:", ":pending:", ":settled:", ":patience:", ":journal:"} {
		if strings.HasPrefix(key, part) && script != "recall" {
			return false
		}
	}
	return true
}

// putAside tells whether the agent 0-a1 was put aside. Then its call failed, and all that changed
// is where the agent stands.
func putAside(t *testing.T, d *disturbed, err error, diff string) bool {
	if d.rdb.ZScore(context.Background(), d.q.Root(0)+":broken", "0-a1").Err() != nil {
		return false
	}
	for _, part := range []string{":journal:", ":wait:", ":pending:", ":patience:", ":children:", "0-a1.n"} {
		if err == nil || strings.Contains(diff, part) {
			t.Errorf("0-a1 was put aside, with error %v, and it changed:\n%s", err, diff)
		}
	}
	return true
}

// doneOrNothing is the promise of what writes in one place.
func doneOrNothing(t *testing.T, d *disturbed, _ string, err error, before string) {
	diff := redistest.Diff(before, d.dump(t))
	if putAside(t, d, err, diff) {
		return
	}
	text := d.rdb.HGet(context.Background(), d.q.Root(0)+":journal:0-a1", "7").Val()
	if done := text == "x"; done != (diff != "") || !done && err == nil {
		t.Errorf("error %v, entry 7 is %q, and it changed:\n%s", err, text, diff)
	}
}

// waitsOrDoesNot is the promise of suspend: all of it is there, or nothing.
func waitsOrDoesNot(t *testing.T, d *disturbed, _ string, err error, before string) {
	ctx, root := context.Background(), d.q.Root(0)
	diff := redistest.Diff(before, d.dump(t))
	status := d.field("0-a1", "status")
	if status != "WAITING" {
		if !putAside(t, d, err, diff) && (err == nil || diff != "") {
			t.Errorf("0-a1 is %q with error %v, and it changed:\n%s", status, err, diff)
		}
		return
	}
	missing := map[string]error{
		"the wait's limit":   d.rdb.ZScore(ctx, root+":waits", "0-a1").Err(),
		"the child's record": d.rdb.Get(ctx, root+":spec:0-a1.n").Err(),
		"the child's place":  d.rdb.ZScore(ctx, root+":ready:agents", "0-a1.n").Err(),
		"the child's time":   d.rdb.ZScore(ctx, root+":deadlines", "0-a1.n").Err(),
		"the checkpoint":     d.rdb.HGet(ctx, root+":journal:0-a1", "state").Err(),
		"a member":           d.rdb.ZScore(ctx, root+":pending:0-a1", "n").Err(),
		"its patience":       d.rdb.ZScore(ctx, root+":patience:0-a1", "c").Err(),
	}
	for what, err := range missing {
		if err != nil {
			t.Errorf("0-a1 waits, and %s is not there: %v", what, err)
		}
	}
}

// resolvesWhateverItsAgentIs: a promise that can be read is settled, and its record ends
// up whole, whatever is in the way of the agent that waits for it.
func resolvesWhateverItsAgentIs(t *testing.T, d *disturbed, answer string, err error, _ string) {
	ctx, root := context.Background(), d.q.Root(0)
	if d.rdb.Type(ctx, root).Val() != "hash" {
		return // without its root a partition does nothing
	}
	record, readable := d.q.Get(ctx, "0-a2.1")
	status := ""
	if readable == nil {
		status = string(record.Status)
	}
	if readable == nil && (status != "COMPLETED" || answer != "COMPLETED" && err == nil) {
		t.Errorf("0-a2.1 is %s, answered %q, %v", status, answer, err)
	}
	if broken, err := d.rdb.ZScore(ctx, root+":broken", "0-a2.1").Result(); err == nil && readable == nil {
		t.Errorf("0-a2.1 was put aside at %v, though nothing is wrong with it", broken)
	}
}
