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

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// agentKeys are the keys of an agent that runs, 0-a1, and of an agent that waits, 0-a2.
var agentKeys = []string{
	":spec:0-a1", ":state:0-a1", ":children:0-a1", ":journal:0-a1", ":wait:0-a1", ":pending:0-a1", ":settled:0-a1", ":patience:0-a1",
	":spec:0-a2", ":state:0-a2", ":children:0-a2", ":journal:0-a2", ":wait:0-a2", ":pending:0-a2", ":settled:0-a2", ":patience:0-a2",
	":spec:0-a1.c", ":spec:0-a2.1", ":waits", ":claims:w1", ":ready:agents", ":queue:agents",
}

// agentScripts are the calls that are made on them.
var agentScripts = []struct {
	name string
	call func(*disturbed, context.Context) (string, error)
	only func(t *testing.T, d *disturbed, answer string, err error, before string) // checks that are only for this call
}{
	{"suspend", func(d *disturbed, ctx context.Context) (string, error) {
		_, err := claim.Of(d.q).Suspend(ctx, waiting("0-a1"))
		return "", err
	}, waitsOrDoesNot},
	{"remember", func(d *disturbed, ctx context.Context) (string, error) {
		return "", claim.Of(d.q).Remember(ctx, "0-a1", 1, "w1", claim.Note{Checkpoint: &queue.Checkpoint{State: []byte("s")},
			Entries: []claim.Entry{{Number: 7, Text: []byte("x")}}})
	}, doneOrNothing},
	{"recall", func(d *disturbed, ctx context.Context) (string, error) {
		_, err := claim.Of(d.q).Recall(ctx, "0-a2")
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

// waiting returns a wait of an agent for a child that exists and one that the wait creates.
func waiting(agent string) claim.Suspension {
	return claim.Suspension{Agent: agent, Epoch: 1, Worker: "w1",
		Wait: claim.Wait{Entry: 5, Mode: queue.WaitAll, Digest: "d", Label: "l", Limit: 10 * time.Second,
			Members: []claim.Member{{ID: agent + ".c", Patience: 2 * time.Second, Mask: "oobbb"}, {ID: agent + ".n"}}},
		Note:     claim.Note{Checkpoint: &queue.Checkpoint{State: []byte("s")}, Entries: []claim.Entry{{Number: 4, Text: []byte("x")}}},
		Children: []queue.Task{{ID: agent + ".n", Kind: "k", Queue: "agents", Timeout: time.Minute}},
	}
}

// disturbAgents adds two agents: one that runs, and one that waits.
func disturbAgents(t *testing.T, d *disturbed) {
	t.Helper()
	ctx := context.Background()
	for _, id := range []string{"0-a1", "0-a2"} {
		d.accepts(t, "id", id, "kind", "k", "queue", "agents", "attempt_timeout_ms", "30000")
		d.w.Take(t, id, "agents")
		d.accepts(t, "id", id+".c", "kind", "k", "queue", "default", "role", "promise")
	}
	d.accepts(t, "id", "0-a2.1", "kind", "k", "queue", "default", "role", "promise")
	note := claim.Note{Entries: []claim.Entry{{Number: 1, Text: []byte("first")}}}
	if err := claim.Of(d.q).Remember(ctx, "0-a1", 1, "w1", note); err != nil {
		t.Fatal(err)
	}
	s := waiting("0-a2")
	s.Wait.Mode = queue.WaitAnyOK
	s.Wait.Members = append(s.Wait.Members, claim.Member{ID: "0-a2.1"})
	if answer, err := claim.Of(d.q).Suspend(ctx, s); answer != nil || err != nil {
		t.Fatal(answer, err)
	}
}

// A key of a wrong type that belongs to an agent is noticed before anything of a wait is written. It
// affects only the agent: the ends of its members are not undone, and other tasks continue.
func TestAnAgentsKeyOfTheWrongType(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		library := testclock.Library(t, rdb)
		for i, s := range agentScripts {
			for j, key := range slices.Concat(agentKeys, []string{"", ":deadlines", ":limits", ":delayed", ":draining", ":retained", ":events"}) {
				if !combined(t, i, j) {
					continue
				}
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
					if got := d.rubbish(t, key); got != "rubbish" && mustStay(s.name, key) {
						t.Errorf("the key holds %q now, want rubbish", got)
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

// mustStay reports whether the key must still exist after the call. The keys of a wait are deleted with
// it, whatever their type is.
func mustStay(script, key string) bool {
	for _, part := range []string{":wait:", ":pending:", ":settled:", ":patience:", ":journal:"} {
		if strings.HasPrefix(key, part) && script != "recall" {
			return false
		}
	}
	return true
}

// putAside reports whether the agent 0-a1 was put aside. Then its call failed and changed only the
// sets that contain the agent.
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

// doneOrNothing is the check of remember: it has written all, or it has failed and written nothing.
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

// waitsOrDoesNot is the check of suspend: all of the wait is stored, or nothing.
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
			t.Errorf("0-a1 waits, but %s is missing: %v", what, err)
		}
	}
}

// resolvesWhateverItsAgentIs checks that a promise with a good record is settled, even if a key of
// the agent that waits for it has a wrong type.
func resolvesWhateverItsAgentIs(t *testing.T, d *disturbed, answer string, err error, _ string) {
	ctx, root := context.Background(), d.q.Root(0)
	if d.rdb.Type(ctx, root).Val() != "hash" {
		return // without its root a partition takes no calls
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
		t.Errorf("0-a2.1 was put aside at %v, but its record is good", broken)
	}
}
