package operate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/names"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
	"github.com/curfew-dev/curfew/refusal"
)

// neighbours are keys that are not of the namespace a, though they begin like its own.
var neighbours = []string{"a", "a:", "a{", "a{:{0}", "a{0}", "a:{", "a:{x}", "a:{0}x", "a:{0}{1}", "a:{00}", "a:{999}", "a:{999}:spec:x", "a:b:{0}", "a:b:{0}:spec:x", "ab:{0}", "ab:{0}:spec:x",
	"A:{0}:spec:x", "x:a:{0}:spec:x", "a*:{0}:spec:x", "a?:{0}", "[a]:{0}:spec:x", `\a:{0}:spec:x`}

// fill makes the namespace a, with a key of each kind in each partition and some tasks, and its neighbours.
func fill(t *testing.T, rdb redis.UniversalClient, partitions int) (keys int64) {
	t.Helper()
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "a", Partitions: partitions})
	for range 4 * partitions {
		queuetest.Enqueue(t, q, queue.Task{Payload: make([]byte, 300), Timeout: time.Minute})
	}
	if _, err := rdb.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
		for p := range partitions {
			for kind, more := range kinds {
				key := root("a", p) + ":" + kind
				if more {
					key += ":x"
				}
				if kind == "workers" {
					pipe.ZAdd(t.Context(), key, redis.Z{Score: 1, Member: "dead"}) // Remove reads it
					continue
				}
				pipe.SetNX(t.Context(), key, "x", 0)
			}
		}
		for _, key := range neighbours {
			pipe.Set(t.Context(), key, "x", 0)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return int64(partitions) * int64(len(kinds)+1+4+4*2) // root; ready, queue, wake and figures of the default queue; spec and payload
}

// onlyNeighbours fails the test unless the neighbours are all that is left.
func onlyNeighbours(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	var want strings.Builder
	for _, key := range slices.Sorted(slices.Values(neighbours)) {
		want.WriteString(key + " (string)\n  x\n")
	}
	if diff := redistest.Diff(want.String(), redistest.Dump(t, rdb, "")); diff != "" {
		t.Errorf("left beside the neighbours, and missing of them:\n%s", diff)
	}
}

func TestRemoveRemovesEveryKeyOfANamespaceAndNoOther(t *testing.T) {
	s, rdb := start(t)
	keys := fill(t, rdb, 3)
	found, err := s.CountKeys(t.Context(), "a", func(Looked) {})
	if err != nil || found.Sum() != keys || found.Unknown != 0 || found.Kinds["root"] != 3 || found.Kinds["spec"] != 15 || found.Kinds["events"] != 3 {
		t.Errorf("found %d keys, want %d: %+v, %v", found.Sum(), keys, found, err)
	}
	removed, left, err := s.Remove(t.Context(), "a", Removal{})
	if err != nil || left.Unknown != 0 || !maps.Equal(removed.Kinds, found.Kinds) {
		t.Errorf("removed %+v, left %+v, %v, want %+v", removed, left, err, found)
	}
	onlyNeighbours(t, rdb)
	if _, _, err := s.Remove(t.Context(), "a", Removal{}); !errors.Is(err, refusal.ErrNoNamespace) {
		t.Errorf("again: %v", err)
	}
	queuetest.Enqueue(t, queuetest.Open(t, rdb, queue.Config{Namespace: "a"}), queue.Task{}) // the name is free
}

func TestKeysThatCurfewDidNotWriteAreLeft(t *testing.T) {
	s, rdb := start(t)
	fill(t, rdb, 1)
	rdb.Set(t.Context(), "a:{0}:mine", "x", 0)
	rdb.Set(t.Context(), "a:{1}", "x", 0) // looks like a root
	removed, left, err := s.Remove(t.Context(), "a", Removal{})
	if err != nil || left.Unknown != 1 || left.Example != "a:{0}:mine" || removed.Unknown != 0 || rdb.Exists(t.Context(), "a:{0}:mine", "a:{1}").Val() != 2 {
		t.Errorf("left %+v, %v", left, err)
	}
	if removed, left, err := s.Remove(t.Context(), "a", Removal{}); err != nil || removed.Sum() != 0 || left.Unknown != 1 {
		t.Errorf("again: %+v, left %+v, %v", removed, left, err)
	}
	if removed, left, err := s.Remove(t.Context(), "a", Removal{Unknown: true}); err != nil || removed.Unknown != 1 || left.Unknown != 0 {
		t.Errorf("with unknown keys: %+v, left %+v, %v", removed, left, err)
	}
	rdb.Del(t.Context(), "a:{1}")
	onlyNeighbours(t, rdb)
}

func TestANamespaceInUseIsNotRemoved(t *testing.T) {
	s, rdb := start(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "a", Partitions: 2})
	// untouched reports a change, except of the turn and counters that a caller's own calls change.
	refused := func(claim string, words ...string) {
		t.Helper()
		before := redistest.Digest(t, rdb, "")
		_, _, err := s.Remove(t.Context(), "a", Removal{})
		var used *InUseError
		if !errors.As(err, &used) || redistest.Digest(t, rdb, "") != before {
			t.Errorf("%s: %v, want it refused and nothing changed", claim, err)
		}
		mentions(t, err, words...)
		mentions(t, s.InUse(t.Context(), "a"), words...)
	}
	taker := &queuetest.Taker{Q: q, Worker: "w1"}
	id := queuetest.Enqueue(t, q, queue.Task{}).ID
	taker.Take(t, id, "default")
	refused("a worker", "the namespace a is in use: worker w1 has a lease for another")
	rdb.Del(t.Context(), "a:{0}:workers", "a:{1}:workers")
	if _, err := reaper.Sweep(t.Context(), q, 1, "r1", 100, time.Minute); err != nil {
		t.Fatal(err)
	}
	refused("a reaper", "reaper r1 has the turn for another")
	for p := range 2 { // what ended is no use
		rdb.HSet(t.Context(), root("a", p), "turn_until", time.Now().Add(-time.Hour).UnixMilli())
	}
	rdb.ZAdd(t.Context(), "a:{1}:workers", redis.Z{Score: float64(time.Now().Add(-time.Hour).UnixMilli()), Member: "dead"})
	if err := s.InUse(t.Context(), "a"); err != nil {
		t.Errorf("a dead worker and reaper: %v", err)
	}
	rdb.HSet(t.Context(), "a:{1}", "version", "3")
	if _, _, err := s.Remove(t.Context(), "a", Removal{}); err == nil || rdb.HGet(t.Context(), "a:{0}", "version").Val() != "2" {
		t.Errorf("a newer version: %v", err)
	} else {
		mentions(t, err, "version 3", "--force")
	}
	rdb.HSet(t.Context(), "a:{0}", "turn_until", time.Now().Add(time.Hour).UnixMilli())
	if _, _, err := s.Remove(t.Context(), "a", Removal{Force: true}); err != nil || redistest.Dump(t, rdb, "a:{") != "" {
		t.Errorf("with force: %v\n%s", err, redistest.Dump(t, rdb, "a:{"))
	}
}

func TestTheUseOfManyPartitionsIsSeenInOneRoundTrip(t *testing.T) {
	s, rdb := start(t)
	queuetest.Open(t, rdb, queue.Config{Namespace: "a", Partitions: 50})
	rdb.HSet(t.Context(), root("a", 42), "turn_of", "r1", "turn_until", time.Now().Add(time.Minute).UnixMilli())
	rdb.ZAdd(t.Context(), "a:{43}:workers", redis.Z{Score: float64(time.Now().Add(time.Minute).UnixMilli()), Member: "w1"})
	trips := 0
	rdb.AddHook(before{func(context.Context, redis.Cmder) error { trips++; return nil }})
	mentions(t, s.InUse(t.Context(), "a"), "reaper r1 has the turn", "worker w1 has a lease")
	if roots := (names.MaxPartitions + someRoots - 1) / someRoots; trips > roots+3 {
		t.Errorf("%d round trips, %d of them for the roots", trips, roots)
	}
}

func TestAFewWhoUseANamespaceAreNamed(t *testing.T) {
	e := &InUseError{Name: "a", Who: []string{"w1", "w2", "w3", "w4"}}
	if got, want := e.Error(), "the namespace a is in use: w1, w2, w3, w4"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e.Who = append(e.Who, "w5")
	if got, want := e.Error(), "the namespace a is in use: w1, w2, w3, and 2 others"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A worker fetches after Remove has looked for workers, and before it has closed the namespace.
func TestAWorkerThatComesInTimeKeepsItsNamespace(t *testing.T) {
	s, rdb := start(t)
	q := queuetest.Open(t, client(t, "redis://"+s.Masters()[0]), queue.Config{Namespace: "a", Partitions: 2})
	id := queuetest.Enqueue(t, q, queue.Task{}).ID
	var once sync.Once
	rdb.AddHook(before{func(_ context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "eval" {
			once.Do(func() { (&queuetest.Taker{Q: q, Worker: "w1"}).Take(t, id, "default") })
		}
		return nil
	}})
	_, _, err := s.Remove(t.Context(), "a", Removal{})
	mentions(t, err, "worker w1 has a lease")
	if n, err := s.Namespace(t.Context(), "a"); err != nil || !n.Known() || n.Live != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	queuetest.Enqueue(t, q, queue.Task{})
	queuetest.Sound(t, q)
}

// Remove is interrupted before each of its commands in turn, as by a signal or a lost connection. Until the next one finishes nobody
// can use the namespace, unless the first had not begun.
func TestAnInterruptedRemoveIsFinishedByTheNext(t *testing.T) {
	s, rdb := start(t)
	var left int // commands before the interruption; below 0: none
	interrupted := errors.New("interrupted")
	rdb.AddHook(before{func(context.Context, redis.Cmder) error {
		if left--; left < 0 {
			return interrupted
		}
		return nil
	}})
	whole, half := 0, 0
	for n := 1; ; n++ {
		other := client(t, "redis://"+s.Masters()[0])
		left = 1 << 30
		keys := fill(t, other, 2)
		q := queuetest.Open(t, other, queue.Config{Namespace: "a"})
		left = n
		first, _, err := s.Remove(t.Context(), "a", Removal{})
		left = 1 << 30
		if err == nil {
			onlyNeighbours(t, other)
			break
		}
		if !errors.Is(err, interrupted) {
			t.Fatalf("%d commands: %v", n, err)
		}
		if now, err := s.Namespace(t.Context(), "a"); err == nil && now.Version == Removing {
			half++
			if _, err := queue.Open(t.Context(), other, queue.Config{Namespace: "a", Logger: slog.New(slog.DiscardHandler)}); err == nil {
				t.Errorf("%d commands: a program opened the rest", n)
			}
			if _, _, err := s.Create(t.Context(), "a", Settings{}); err == nil {
				t.Errorf("%d commands: the rest was created again", n)
			}
		} else if err == nil {
			whole++
			if first.Sum() > 0 {
				t.Errorf("%d commands: %d keys removed of a namespace that can be used", n, first.Sum())
			}
		}
		if _, err := q.Enqueue(t.Context(), queue.Task{Kind: "k"}); first.Sum() > 0 && err == nil {
			t.Errorf("%d commands: a program enqueued into the rest", n)
		}
		second, _, err := s.Remove(t.Context(), "a", Removal{})
		if err != nil && !errors.Is(err, refusal.ErrNoNamespace) || first.Sum()+second.Sum() < keys {
			t.Errorf("%d commands: first %d, then %d of %d keys, %v", n, first.Sum(), second.Sum(), keys, err)
		}
		onlyNeighbours(t, other)
	}
	if whole == 0 || half < 5 {
		t.Errorf("%d interruptions before it began, %d while it worked", whole, half)
	}
}

func TestAnInterruptEndsRemoveAtOnce(t *testing.T) {
	s, rdb := start(t)
	fill(t, rdb, 2)
	ctx, cancel := context.WithCancel(t.Context())
	rdb.AddHook(before{func(_ context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "unlink" {
			cancel()
		}
		return nil
	}})
	if _, _, err := s.Remove(ctx, "a", Removal{Rate: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, _, err := s.Remove(t.Context(), "a", Removal{}); err != nil {
		t.Error(err)
	}
	onlyNeighbours(t, rdb)
}

// A key is counted by the one that removed it.
func TestTwoRemoveAtOnce(t *testing.T) {
	s, rdb := start(t)
	for round := range 5 {
		keys := fill(t, rdb, 2)
		var sum [3]int64
		var group sync.WaitGroup
		for i := range sum {
			group.Go(func() {
				removed, _, err := s.Remove(context.Background(), "a", Removal{})
				if err != nil && !errors.Is(err, refusal.ErrNoNamespace) {
					t.Error(err)
				}
				sum[i] = removed.Sum()
			})
		}
		group.Wait()
		if sum[0]+sum[1]+sum[2] != keys {
			t.Errorf("round %d: %d removed, want %d", round, sum, keys)
		}
		onlyNeighbours(t, rdb)
	}
}

func TestRemoveIsNoFasterThanItsRateAndItsCommandsAreSmall(t *testing.T) {
	s, rdb := start(t)
	queuetest.Open(t, rdb, queue.Config{Namespace: "a"})
	pipe := rdb.Pipeline()
	for i := range 2000 {
		pipe.Set(t.Context(), fmt.Sprint("a:{0}:spec:0-", i), "x", 0)
	}
	pipe.Exec(t.Context())
	most := 0
	rdb.AddHook(before{func(_ context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "unlink" { // the first of a pipeline
			most = max(most, len(cmd.Args())-1)
		}
		return nil
	}})
	began := time.Now()
	removed, _, err := s.Remove(t.Context(), "a", Removal{Rate: 10_000})
	if took := time.Since(began); err != nil || removed.Sum() != 2001 || took < 200*time.Millisecond || most > removeTogether {
		t.Errorf("%d keys in %v, up to %d in a command, %v; want at least 200ms, and up to %d", removed.Sum(), took, most, err, removeTogether)
	}
}

func TestSomebodyWhoKeepsWritingIsNotWaitedFor(t *testing.T) {
	s, rdb := start(t)
	fill(t, rdb, 1)
	other := client(t, "redis://"+s.Masters()[0])
	rdb.AddHook(before{func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "scan" {
			return other.Set(ctx, "a:{0}:broken", "x", 0).Err()
		}
		return nil
	}})
	_, _, err := s.Remove(t.Context(), "a", Removal{})
	mentions(t, err, "somebody keeps writing keys")
}

// removalOnACluster is part of TestFunctionsOnACluster, since a cluster takes seconds to start.
func removalOnACluster(t *testing.T, s *Server, rdb redis.UniversalClient) {
	keys := fill(t, rdb, 7)
	all, looked, err := s.List(t.Context(), 0, func(Looked) {})
	var names []string
	for _, n := range all {
		names = append(names, n.Name)
	}
	if err != nil || !slices.Equal(names, []string{"a"}) || all[0].Partitions != 7 || all[0].Live != 28 || looked.Masters != 3 {
		t.Errorf("found %v %+v, looked %+v, %v", names, all, looked, err)
	}
	found, err := s.CountKeys(t.Context(), "a", func(Looked) {})
	if err != nil || found.Sum() != keys {
		t.Errorf("found %d keys, want %d, %v", found.Sum(), keys, err)
	}
	if removed, left, err := s.Remove(t.Context(), "a", Removal{}); err != nil || removed.Sum() != keys || left.Unknown != 0 {
		t.Errorf("removed %d of %d, left %+v, %v", removed.Sum(), keys, left, err)
	}
	onlyNeighbours(t, rdb)
	if n, created, err := s.Create(t.Context(), "a", Settings{Partitions: 9}); err != nil || !created || n.Partitions != 9 || len(n.Missing) > 0 {
		t.Errorf("created %v: %+v, %v", created, n, err)
	}
}
