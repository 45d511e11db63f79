package faults

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/queue"
)

// withAOF starts a server whose files are in a folder that the test knows.
func withAOF(t *testing.T, dir, fsync string) *redistest.Server {
	t.Helper()
	server := redistest.Start(t, "--dir", dir, "--appendonly", "yes", "--appendfsync", fsync, "--auto-aof-rewrite-percentage", "0")
	loaded(t, server)
	return server
}

// loaded waits until a server has read its files.
func loaded(t *testing.T, server *redistest.Server) {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer rdb.Close()
	await.Until(t, "the server has loaded", func() bool { return rdb.Ping(t.Context()).Err() == nil })
}

// A power loss takes what was not synced: the tail of the file, cut anywhere, also
// in the middle of a script's writes. What comes back is a state that really was, no
// less than what was on disk, and everybody goes on from there.
func TestALostTailGivesAStateThatReallyWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := withAOF(t, dir, "everysec")
	s := newStage(t, server.Addr, server.Addr)
	stopFleet := s.fleet(2, 6*time.Second)
	stopClerk := s.Run(s.clerk)
	stopProducer := s.Run(func(ctx context.Context) error { return s.produce(ctx, 10*time.Millisecond) })
	lost := map[string]bool{}
	last := "0"
	for range stages.Times(1, 3, 30) {
		w := s.witness(s.Context(), server.Addr, last)
		stages.Pass(time.Duration(300+rand.IntN(300)) * time.Millisecond) // sleeps: the load
		safe := s.Ledger.Copy()
		synced := s.written(dir, s.Enqueue(queue.Task{Kind: "quick"})[0])
		stages.Pass(time.Duration(100+rand.IntN(400)) * time.Millisecond) // sleeps: what is going to be lost
		server.Kill()
		<-w.gone
		told := s.Ledger.Copy()
		after := s.cut(dir, synced)
		s.restored(after, w.seen(), safe, told, lost)
		s.mend(dir)
		server.Restart(t)
		loaded(t, server)
		past := s.Events(s.Q)
		if len(past) == 0 {
			t.Fatal("no event came back")
		}
		last = past[len(past)-1].Entry
	}
	stages.Pass(300 * time.Millisecond) // sleeps: everybody goes on
	stopProducer()
	for id := range lost { // the cancelling of some is lost
		s.callOff(s.Q, id)
	}
	s.drained()
	stopClerk()
	stats := stopFleet()
	if len(lost) == 0 {
		t.Error("nothing was lost, so this proves nothing")
	}
	s.account(func(id string) bool { return lost[id] })
	for _, err := range s.Ledger.Copy().Trouble {
		s.Complain("a caller was told: %v", err)
	}
	t.Logf("%d tasks acknowledged; of %d something that was acknowledged was lost; the fleet: %+v", len(s.Ledger.Copy().Tasks), len(lost), stats)
}

// cut takes unsynced bytes off a dead server's file, and returns a copy of the rest.
func (s *stage) cut(dir string, synced int64) (copied string) {
	s.Helper()
	file, err := appendFile(dir)
	if err != nil {
		s.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		s.Fatal(err)
	}
	size := synced + rand.Int64N(info.Size()-synced+1)
	if err := os.Truncate(file, size); err != nil {
		s.Fatal(err)
	}
	copied = s.TempDir()
	if err := copyTo(dir, copied, size); err != nil {
		s.Fatal(err)
	}
	s.Logf("%d of %d unsynced bytes were lost", info.Size()-size, info.Size()-synced)
	return copied
}

// restored looks, on a server of its own, at what a dead server's files give, and
// notes what of the ledger is lost. None of it may be what was safe.
func (s *stage) restored(dir string, seen []stages.Event, safe, told *stages.Ledger, lost map[string]bool) {
	s.Helper()
	server := withAOF(s.T, dir, "everysec")
	defer server.Kill()
	here := s.survey(s.AnotherAt(server.Addr))
	s.begins(after(here.events, seen), seen)
	s.missing(here, safe, told, lost)
}

// missing notes what of the ledger is not in a scene, and tells it.
func (s *stage) missing(here *scene, safe, told *stages.Ledger, lost map[string]bool) {
	s.Helper()
	count := func(l *stages.Ledger, note func(id string)) (tasks, settled, cancelled int) {
		for _, id := range l.Tasks {
			if here.records[id] == nil && !lost[id] {
				tasks++
				note(id)
			}
		}
		for id, ends := range l.Told {
			for _, end := range ends {
				if r := here.records[id]; r == nil || lost[id] || stages.EndOf(r) == end {
					continue
				}
				if end.Status == queue.Completed {
					settled++
				} else {
					cancelled++
				}
				note(id)
			}
		}
		return tasks, settled, cancelled
	}
	if a, b, c := count(safe, func(string) {}); a+b+c > 0 {
		s.Complain("%d tasks, %d completions and %d cancellations are lost that were safe", a, b, c)
	}
	a, b, c := count(told, func(id string) { lost[id] = true })
	s.Logf("lost: %d of %d tasks, %d of %d completions, %d of %d cancellations that were acknowledged",
		a, len(told.Tasks), b, told.Count(queue.Completed), c, told.Count(queue.Cancelled))
}

// after is the part of a history from where another begins.
func after(all, from []stages.Event) []stages.Event {
	for i, e := range all {
		if len(from) > 0 && e.Entry == from[0].Entry {
			return all[i:]
		}
	}
	return nil
}

// One file of a few hundred scripts, cut at many places of its tail: whatever is left
// is a state that really was.
func TestAFileCutAnywhereGivesAStateThatReallyWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := withAOF(t, dir, "always")
	s := newStage(t, server.Addr, server.Addr)
	w := s.witness(s.Context(), server.Addr, "0")
	stopFleet := s.fleet(1, 6*time.Second)
	stopClerk := s.Run(s.clerk)
	stop := s.Run(func(ctx context.Context) error { return s.produce(ctx, 15*time.Millisecond) })
	tail := 64 << 10
	if stages.Long() {
		tail = 4096 // at each byte
	}
	stages.Pass(700 * time.Millisecond) // sleeps: the load
	file, err := appendFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, "a busy machine, too, has written more than the tail", func() bool {
		info, err := os.Stat(file)
		return err == nil && info.Size() > int64(tail)
	})
	server.Kill()
	<-w.gone
	seen := w.seen()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); stopClerk(); stopFleet() }()
	defer server.Restart(t)

	inside := 0
	states := map[int]bool{}
	for _, at := range cuts(len(text), tail, stages.Times(8, 30, 4096)) {
		if bytes.Count(text[:at], []byte("\r\nMULTI\r\n")) > bytes.Count(text[:at], []byte("\r\nEXEC\r\n")) {
			inside++
		}
		states[s.startsWith(dir, int64(at), seen)] = true
	}
	t.Logf("%d events in %d bytes; %d cuts in the middle of a script's writes gave %d different states", len(seen), len(text), inside, len(states))
	if inside < 3 || len(states) < 3 {
		t.Errorf("%d cuts in the middle of a script and %d states prove little", inside, len(states))
	}
}

// cuts are n places in the tail of a file that is longer than it, spread evenly, each
// moved a little.
func cuts(size, tail, n int) []int {
	step := tail / n
	places := make([]int, 0, n)
	for i := range n {
		places = append(places, size-i*step-rand.IntN(step))
	}
	return places
}

// startsWith starts a server on a cut file, and returns how much it remembers.
func (s *stage) startsWith(dir string, size int64, seen []stages.Event) int {
	s.Helper()
	cut, err := os.MkdirTemp(s.TempDir(), fmt.Sprint(size, "-"))
	if err != nil {
		s.Fatal(err)
	}
	if err := copyTo(dir, cut, size); err != nil {
		s.Fatal(err)
	}
	server := withAOF(s.T, cut, "no")
	defer server.Kill()
	here := s.survey(s.AnotherAt(server.Addr))
	s.begins(here.events, seen)
	return len(here.events)
}
