package audit

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/wire"
	"github.com/curfew-dev/curfew/queue"
)

// furnished makes a namespace with tasks in every state: "0-p" and others are in line, "0-r" runs and has
// the child "0-r.c", "0-e" has failed, "0-d" is delayed, "0-k" has an idempotency key, "0-a" waits for
// "0-a.0" and "0-a.1", and "0-g" collects: it was given the ends of "0-g.0" and "0-g.1", and that of "0-g.2" is kept.
func furnished(t *testing.T, rdb redis.UniversalClient) *queue.Queue {
	t.Helper()
	ctx := context.Background()
	q, err := queue.Open(ctx, rdb, queue.Config{Namespace: redistest.Namespace(t), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	enqueue := func(words ...any) {
		do(q.Engine().Library().Run(ctx, q.Client(), "enqueue", q.Root(0), wire.Tasks(words)...))
	}
	seq := int64(0)
	held := func(ids ...string) {
		for _, id := range ids {
			seq++
			enqueue("id", id, "kind", "k", "queue", "q"+id, "timeout_ms", "3600000")
			do(claim.Of(q).Fetch(ctx, 0, "w1", claim.Ask{N: 1, Seq: seq, Lease: time.Hour, Quotas: []claim.Quota{{Queue: "q" + id, N: 1}}}))
		}
	}
	held("0-r", "0-e", "0-a")
	do(claim.Of(q).Settle(ctx, 0, "w1", queue.NewCall(), []queue.Outcome{{ID: "0-e", Epoch: 1, Verb: queue.Fail, Error: "e"}}, claim.Ask{}))
	w := claim.Wait{Entry: 1, Digest: "d", Mode: queue.WaitAll, Mask: "obbbb"}
	var children []queue.Task
	for i := range 2 {
		id := fmt.Sprint("0-a.", i)
		w.Members = append(w.Members, claim.Member{ID: id, Mask: w.Mask})
		children = append(children, queue.Task{ID: id, Kind: "k", Promise: true})
	}
	do(claim.Of(q).Suspend(ctx, claim.Suspension{Agent: "0-a", Epoch: 1, Worker: "w1", Wait: w, Children: children}))
	held("0-g")
	do(nil, claim.Of(q).Remember(ctx, "0-g", 1, "w1", claim.Note{Entries: []claim.Entry{{Number: 1, Text: []byte("collect")}}}))
	for i := range 3 {
		id := fmt.Sprint("0-g.", i)
		do(q.Enqueue(ctx, queue.Task{ID: id, Kind: "k", Promise: true}))
		do(q.Resolve(ctx, id, nil))
		if i == 1 {
			do(claim.Of(q).Suspend(ctx, claim.Suspension{Agent: "0-g", Epoch: 1, Worker: "w1", Wait: claim.Wait{Entry: 2, Digest: "d", Mode: queue.WaitCollect}}))
		}
	}
	do(q.Enqueue(ctx, queue.Task{ID: "0-r.c", Kind: "k"}))
	enqueue("id", "0-p", "kind", "k", "timeout_ms", "3600000")
	enqueue("id", "0-d", "kind", "k", "delay_ms", "3600000")
	enqueue("id", "0-k", "kind", "k", "idempotency_key", "key")
	enqueue("id", "0-b", "kind", "k", "payload", strings.Repeat("b", 1000))
	do(q.Pause(ctx, "quiet"))
	return q
}

// plants are damages of the namespace that furnished makes.
var plants = []struct {
	plant []string // commands; {r} is the root
	told  string   // "" if there must be no finding
	left  bool     // a repair cannot repair it
}{
	{[]string{"PING"}, "", false},
	{[]string{"ZREM {r}:deadlines 0-p"}, "0-p: must be in deadlines", false},
	{[]string{"ZADD {r}:deadlines 5 0-p"}, "0-p: must be in deadlines", false},
	{[]string{"ZADD {r}:deadlines 5 0-b"}, "0-b: must not be in deadlines", false},
	{[]string{"ZADD {r}:deadlines 5 0-zzz"}, "0-zzz: is in deadlines and has no record", false},
	{[]string{"ZREM {r}:ready:default 0-p"}, "0-p: must be in ready:default", false},
	{[]string{"ZADD {r}:ready:default 5 0-r"}, "0-r: is in the line of default too", false},
	{[]string{"ZADD {r}:ready:other 5 0-p"}, "0-p: is in the line of other too", false},
	{[]string{"ZADD {r}:ready:default 5 0-e.x"}, "0-e.x: is in ready:default and has no record", false},
	{[]string{"ZREM {r}:claims:w1 0-r"}, "0-r: is RUNNING and its worker", false},
	{[]string{"ZADD {r}:claims:w1 5 0-p"}, "0-p: is held by w1 and is PENDING", false},
	{[]string{"ZADD {r}:claims:w2 5 0-r"}, "0-r: is held by w2 and is RUNNING", false},
	{[]string{"ZADD {r}:claims:w2 5 0-r"}, "w2: holds claims and is not in workers", false},
	{[]string{"ZREM {r}:workers w1"}, "0-r: is RUNNING and its worker \"w1\" is not in workers", false},
	{[]string{"HSET {r}:worker:w9 seq 1"}, "w9: is a worker that is not in workers", false},
	{[]string{"ZREM {r}:retained 0-e"}, "0-e: has ended and nothing removes its record", false},
	{[]string{"ZADD {r}:retained 5 0-p"}, "0-p: is in retained and lives", false},
	{[]string{"ZADD {r}:dead:default 5 0-p"}, "0-p: is in dead:default and lives", false},
	{[]string{"ZADD {r}:draining 5 0-zzz"}, "0-zzz: is in draining and has no record", false},
	{[]string{"ZREM {r}:dead:q0-e 0-e"}, "0-e: must be in dead:q0-e", false},
	{[]string{"ZADD {r}:dead:q0-e 5 0-e"}, "0-e: must be in dead:q0-e", false},
	{[]string{"ZADD {r}:dead:other 5 0-e"}, "0-e: is among the failed tasks of other too", false},
	{[]string{"ZADD {r}:limits 5 0-p"}, "0-p: must not be in limits", false},
	{[]string{"ZADD {r}:waits 5 0-p"}, "0-p: must not be in waits", false},
	{[]string{"ZADD {r}:delayed 5 0-p"}, "0-p: must not be in delayed", false},
	{[]string{"ZADD {r}:delayed 5 0-d"}, "0-d: must be in delayed", false},
	{[]string{"ZADD {r}:draining 5 0-p"}, "0-p: is in draining and lives", false},
	{[]string{"ZREM {r}:ready:default 0-p", "ZADD {r}:claims:w1 5 0-p"}, "0-p: must be in ready:default", true}, // its state may be lost
	{[]string{"DEL {r}:ready:default"}, "0-p: must be in ready:default", false},
	{[]string{"DEL {r}:claims:w1", "DEL {r}:worker:w1", "DEL {r}:workers"}, "0-r: is RUNNING and its worker", false},
	{[]string{"HSET {r}:idem lost 0-e"}, "lost: is an idempotency key", false},
	{[]string{"SREM {r}:kinds k"}, "figures:k: is not in the list of kinds", false},
	{[]string{"HSET {r}:journal:0-a 1 abc bytes 7"}, "0-a: has a journal of 3 bytes, and has counted 7", false},
	{[]string{"HSET {r}:wait:0-a settled 1"}, "0-a: has counted 1 ends", false},
	{[]string{"ZADD {r}:pending:0-a 5 nobody"}, "0-a: waits for nobody, which is not a member", false},
	{[]string{"DEL {r}:pending:0-a", "DEL {r}:settled:0-a"}, "0-a: waits for nothing", false},
	{[]string{"DEL {r}:spec:0-a.1"}, "0-a: waits for 1, and there is no such task", true},
	{[]string{"DEL {r}:ends:0-g"}, "0-g: has 3 children that have ended: it was given 2 of these ends, and 0 are kept for it", false},
	{[]string{"DEL {r}:ends:0-g", "HSET {r}:journal:0-g entries 2 bytes 0", "HDEL {r}:journal:0-g 1 2"}, "0-g: has 3 children that have ended", true},
	{[]string{"RPUSH {r}:ends:0-g 2"}, "0-g: has the end of 2 twice", false},
	{[]string{"RPUSH {r}:ends:0-g 7"}, "0-g: has the end of 7, which lives or does not exist", false},
	{[]string{"RPUSH {r}:ends:0-zzz 7"}, "0-zzz: has the key ends:0-zzz, and has ended or has no record", false},
	{[]string{"RPUSH {r}:ends:0-r 7"}, "0-r: has the key ends:0-r, and no field collects", false},
	{[]string{"ZREM {r}:delayed 0-d"}, "0-d: must be in delayed", false},
	{[]string{"LREM {r}:children:0-r 0 0-r.c"}, "0-r.c: is not among its owner's children", false},
	{[]string{"DEL {r}:children:0-r"}, "0-r.c: is not among its owner's children", false},
	{[]string{"RPUSH {r}:children:0-zzz 0-r.c"}, "0-zzz: has children and no record", false},
	{[]string{"DEL {r}:spec:0-r {r}:state:0-r"}, "0-r.c: lives and its owner has no record", true},
	{[]string{"DEL {r}:spec:0-b"}, "0-b: has the key payload:0-b and no record", false},
	{[]string{"SET {r}:result:0-zzz x"}, "0-zzz: has the key result:0-zzz and no record", false},
	{[]string{"SET {r}:state:0-p rubbish"}, "task:0-p: is not a key of Curfew", true},
	{[]string{"DEL {r}:state:0-p", "RPUSH {r}:state:0-p x"}, "task:0-p: is not a key of Curfew", true},
	{[]string{"SET {r}:what x"}, "what: is not a key of Curfew", true},
	{[]string{"DEL {r}:deadlines", "SET {r}:deadlines x"}, "deadlines: is not a key of Curfew", true},
	{[]string{"HDEL {r}:idem key"}, "0-k: lives, and its idempotency key leads to", false},
	{[]string{"HSET {r}:idem lost 0-zzz"}, "lost: is an idempotency key whose task is gone", false},
	{[]string{"HSET {r}:idem lost 0-p"}, "lost: is an idempotency key that its task 0-p does not have", false},
	{[]string{"ZADD {r}:forget 5 lost"}, "lost: is an idempotency key in forget that does not exist", false},
	{[]string{"ZADD {r}:forget 5 key"}, "key: is an idempotency key that must be in forget if", false},
	{[]string{"HSET {r}:queue:q0-r running 2"}, "q0-r: has counted 2 running tasks, and there are 1", false},
	{[]string{"HSET {r}:queue:q0-e running -1"}, "q0-e: has counted -1 running tasks, and there are 0", false},
	{[]string{"HSET {r}:queue:q0-a waiting 0"}, "q0-a: has counted 0 waiting tasks, and there are 1", false},
	{[]string{"HSET {r}:queue:q0-a bounded_peek 2"}, "q0-a: has counted 2 waiting tasks in mode peek (bounded), and there are 0", false},
	{[]string{"HDEL {r}:queue:q0-a unbounded_all bounded_all"}, "q0-a: has counted  waiting tasks in mode all", false},
	{[]string{"SREM {r}:queues q0-r"}, "q0-r: is not in the list of queues", false},
	{[]string{"HSET {r}:figures:x about x"}, "figures:x: is not in the list of kinds", false},
	{[]string{"HSET {r}:figures:k lost -1"}, `figures:k: has counted "-1" in "lost", and that is no count`, false},
	{[]string{"HSET {r}:figures:k lost abc"}, `figures:k: has counted "abc" in "lost"`, false},
	{[]string{"HSET {r}:figures:k lost 1.5 lost2 1e300 lost3 12345678901234567"}, `figures:k: has counted "1.5" in "lost"`, false},
	{[]string{"HSET {r}:figures:k lost 0 lost2 1234567890123456"}, "", false},
	{[]string{"HDEL {r} controlled"}, "controlled: must be there if", false},
	{[]string{"HSET {r}:queue:quiet max_length abc"}, `quiet: has max_length "abc", which must be a whole number of at least 1`, true},
	{[]string{"HSET {r}:queue:quiet max_length 0"}, `quiet: has max_length "0"`, true},
	{[]string{"HSET {r}:queue:quiet max_length 9007199254740993"}, `quiet: has max_length "9007199254740993"`, true},
	{[]string{"HSET {r}:queue:quiet max_running 1.5"}, `quiet: has max_running "1.5"`, true},
	{[]string{"HSET {r} default_timeout_ms -5"}, `default_timeout_ms: is "-5", and must be a whole number from 1 to 2^52, or none`, true},
	{[]string{"HSET {r} default_timeout_ms 4503599627370497"}, `default_timeout_ms: is "4503599627370497"`, true},
	{[]string{"HSET {r} default_timeout_ms none"}, "", false},
	{[]string{"HSET {r} default_timeout_ms 4503599627370496 event_mib 65536 figures on"}, "", false},
	{[]string{"HSET {r} event_mib many"}, `event_mib: is "many", and must be a whole number from 1 to 65536`, true},
	{[]string{"HSET {r} events some"}, `events: is "some", and must be all, terminal or none`, true},
	{[]string{"HSET {r} figures maybe"}, `figures: is "maybe", and must be on or off`, true},
	{[]string{"HSET {r}:queue:quiet rate 1"}, "quiet: must have all of rate", true},
	{[]string{"RPUSH {r}:wake:quiet 1"}, "quiet: is paused and has a token", false},
	{[]string{"RPUSH {r}:wake:default 1 1"}, "wake:default: has ", false},
	{[]string{"ZADD {r}:throttled 5 default"}, "default: is in throttled and has no rate", false},
	{[]string{"DEL {r}:wait:0-a"}, "0-a: must have the field waiting", false},
	{[]string{"ZREM {r}:pending:0-a 1"}, "0-a: has a member 1 that is neither pending nor settled", false},
	{[]string{"RPUSH {r}:settled:0-a 0"}, "0-a: has settled 0, which lives", false},
	{[]string{"ZADD {r}:pending:0-zzz 1 1"}, "0-zzz: has the key pending:0-zzz, and has ended or has no record", false},
	{[]string{"HSET {r}:journal:0-e bytes 1"}, "0-e: has the key journal:0-e, and has ended", false},
}

// do runs commands, in which {r} is the root.
func do(t *testing.T, q *queue.Queue, commands []string) {
	t.Helper()
	for _, command := range commands {
		var args []any
		for _, word := range strings.Fields(strings.ReplaceAll(command, "{r}", q.Root(0))) {
			args = append(args, word)
		}
		if err := q.Client().Do(context.Background(), args...).Err(); err != nil {
			t.Fatal(command, err)
		}
	}
}

// Each case spoils one index of a sound partition. Run must find that, and return the same findings as Read and
// Check, which read all keys at once.
func TestEachPlantedInconsistencyIsFound(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		for _, test := range plants {
			q := furnished(t, rdb)
			do(t, q, test.plant)
			found, err := Run(t.Context(), q, 0)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := Read(t.Context(), q, 0)
			if err != nil {
				t.Fatal(err)
			}
			got, want := sentences(found), sentences(whole.Check(0))
			if test.told == "" && len(got) > 0 || !strings.Contains(fmt.Sprint(got), test.told) {
				t.Errorf("after %q Run returns %q, want %q", test.plant, got, test.told)
			}
			if !slices.Equal(got, want) {
				t.Errorf("after %q Run returns\n%q, and Check\n%q", test.plant, got, want)
			}
		}
	})
}

// sentences returns the findings as sorted text.
func sentences(findings []Finding) []string {
	all := []string{}
	for _, f := range findings {
		all = append(all, f.String())
	}
	slices.Sort(all)
	return slices.Compact(all)
}
