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

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// withAOF starts a server with an append-only file in a given folder.
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

// A power loss removes the end of the file that was not synced. The cut can be anywhere, also within
// the writes of a script. The restored state is an earlier state that has at least what was on disk,
// and all clients continue from it.
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
	// A busy machine may have acknowledged nothing in the part that is cut off.
	for round := 0; round < harness.Times(1, 2, 30) || len(lost) == 0 && round < 30; round++ {
		w := s.witness(s.Context(), server.Addr, last)
		harness.Pass(time.Duration(300+rand.IntN(300)) * time.Millisecond) // sleeps: the load
		safe := s.Ledger.Copy()
		synced := s.written(dir, s.Enqueue(queue.Task{Kind: "quick"})[0])
		harness.Pass(time.Duration(100+rand.IntN(400)) * time.Millisecond) // sleeps: a load that will be lost
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
			t.Fatal("no event is left after the restart")
		}
		last = past[len(past)-1].Entry
	}
	harness.Pass(300 * time.Millisecond) // sleeps: all continue
	stopProducer()
	for id := range lost { // the cancellation of some is lost
		s.callOff(s.Q, id)
	}
	s.drained()
	stopClerk()
	stats := stopFleet()
	if len(lost) == 0 {
		t.Error("nothing was lost, so this test shows nothing")
	}
	s.account(func(id string) bool { return lost[id] })
	for _, err := range s.Ledger.Copy().Trouble {
		s.Complain("a call failed: %v", err)
	}
	t.Logf("%d tasks acknowledged; %d of them lost something that was acknowledged; the fleet: %+v", len(s.Ledger.Copy().Tasks), len(lost), stats)
}

// cut removes a random part of the unsynced end of a dead server's file, and returns a copy of the
// files.
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

// restored starts another server on the files of a dead one, checks its state, and records in lost
// which tasks of the ledger lost something. None of those in safe can be lost.
func (s *stage) restored(dir string, seen []harness.Event, safe, told *harness.Ledger, lost map[string]bool) {
	s.Helper()
	server := withAOF(s.T, dir, "everysec")
	defer server.Kill()
	here := s.survey(s.AnotherAt(server.Addr))
	s.begins(after(here.events, seen), seen)
	s.missing(here, safe, told, lost)
}

// missing records in lost which tasks of told lost something, and logs it. It complains if some of
// safe did.
func (s *stage) missing(here *scene, safe, told *harness.Ledger, lost map[string]bool) {
	s.Helper()
	count := func(l *harness.Ledger, note func(id string)) (tasks, settled, cancelled int) {
		for _, id := range l.Tasks {
			if here.records[id] == nil && !lost[id] {
				tasks++
				note(id)
			}
		}
		for id, ends := range l.Told {
			for _, end := range ends {
				if r := here.records[id]; r == nil || lost[id] || harness.EndOf(r) == end {
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
		s.Complain("%d tasks, %d completions and %d cancellations are lost although they were on disk or replicated", a, b, c)
	}
	a, b, c := count(told, func(id string) { lost[id] = true })
	s.Logf("lost: %d of %d acknowledged tasks, %d of %d completions, %d of %d cancellations",
		a, len(told.Tasks), b, told.Count(queue.Completed), c, told.Count(queue.Cancelled))
}

// after returns the events of all from the first event of from on.
func after(all, from []harness.Event) []harness.Event {
	for i, e := range all {
		if len(from) > 0 && e.Entry == from[0].Entry {
			return all[i:]
		}
	}
	return nil
}

// One file with the writes of a few hundred scripts is cut at many places of its end. Each rest gives
// an earlier state.
func TestAFileCutAnywhereGivesAStateThatReallyWas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := withAOF(t, dir, "always")
	s := newStage(t, server.Addr, server.Addr)
	w := s.witness(s.Context(), server.Addr, "0")
	stopFleet := s.fleet(1, 6*time.Second)
	stopClerk := s.Run(s.clerk)
	stop := s.Run(func(ctx context.Context) error { return s.produce(ctx, 15*time.Millisecond) })
	tail, scripts := 64<<10, 20
	if harness.Long() {
		tail, scripts = 4096, 3 // at each byte
	}
	await.Until(t, "the part to cut has the writes of scripts, and not the library alone", func() bool {
		file, err := appendFile(dir)
		if err != nil {
			return false
		}
		text, err := os.ReadFile(file)
		return err == nil && len(text) > tail && bytes.Count(text[len(text)-tail:], []byte("\r\nEXEC\r\n")) >= scripts
	})
	server.Kill()
	<-w.gone
	seen := w.seen()
	file, err := appendFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { stop(); stopClerk(); stopFleet() }()
	defer server.Restart(t)

	inside := 0
	states := map[int]bool{}
	for _, at := range cuts(len(text), tail, harness.Times(8, 16, 4096)) {
		if bytes.Count(text[:at], []byte("\r\nMULTI\r\n")) > bytes.Count(text[:at], []byte("\r\nEXEC\r\n")) {
			inside++
		}
		states[s.startsWith(dir, int64(at), seen)] = true
	}
	t.Logf("%d events in %d bytes; %d cuts were within the writes of a script; the cuts gave %d different states", len(seen), len(text), inside, len(states))
	if inside < 3 || len(states) < 3 {
		t.Errorf("%d cuts within a script and %d states are too few for this test", inside, len(states))
	}
}

// cuts returns n places in the last tail bytes of a file of size bytes, spread evenly, each moved by
// a random part of the step.
func cuts(size, tail, n int) []int {
	step := tail / n
	places := make([]int, 0, n)
	for i := range n {
		places = append(places, size-i*step-rand.IntN(step))
	}
	return places
}

// startsWith starts a server on a cut file, checks its state, and returns the number of its events.
func (s *stage) startsWith(dir string, size int64, seen []harness.Event) int {
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
