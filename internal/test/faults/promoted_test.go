package faults

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// pair is a master with a replica, and relays to both.
type pair struct {
	*testing.T
	master, replica *redistest.Server
	wire            *relay // from the replica to the master
	door            *relay // from all clients to the master
}

func startPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{T: t, master: redistest.Start(t, "--repl-diskless-sync-delay", "0")}
	p.wire, p.door = startRelay(t, p.master.Addr), startRelay(t, p.master.Addr)
	host, port, _ := net.SplitHostPort(p.wire.addr)
	p.replica = redistest.Start(t, "--replicaof", host, port)
	rdb := harness.Client(t, p.replica.Addr)
	await.Until(t, "the replica is connected to its master", func() bool {
		return strings.Contains(rdb.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	return p
}

// replicated returns when the replica has everything that the master had when it was called.
func (p *pair) replicated() {
	p.Helper()
	conn := harness.Client(p.T, p.master.Addr).Conn()
	defer conn.Close()
	conn.Set(p.Context(), "marker", "x", 0) // WAIT waits for the writes of its own connection
	if n := conn.Wait(p.Context(), 1, await.Patience).Val(); n != 1 {
		p.Fatalf("%d replicas have all writes, want 1", n)
	}
}

// promote kills the master and makes the replica a master. Clients do not get to it yet.
func (p *pair) promote() {
	p.Helper()
	p.master.Kill()
	if err := harness.Client(p.T, p.replica.Addr).Do(p.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		p.Fatal(err)
	}
}

// A replica that is behind is promoted. Its state is an earlier state of the master. Later changes
// are lost, and the test logs them. All clients continue, and an old claim of a task that another
// worker has claimed on the new master is refused.
func TestAPromotedReplicaGoesOnFromAStateThatReallyWas(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	s := newStage(t, p.door.addr, p.door.addr)
	w := s.witness(s.Context(), p.master.Addr, "0")
	old := s.claimOne("fence", "old")
	s.Enqueue(queue.Task{Kind: "ghost", Queue: "ghost"})
	stopFleet := s.fleet(2, 6*time.Second)
	stopClerk := s.Run(s.clerk)
	stopProducer := s.Run(func(ctx context.Context) error { return s.produce(ctx, 10*time.Millisecond) })
	harness.Pass(700 * time.Millisecond) // sleeps: the load

	safe := s.Ledger.Copy()
	p.replicated()
	p.wire.to("")
	ghost := s.take("ghost", "ghost", time.Minute)
	harness.Pass(300 * time.Millisecond) // sleeps: a load that will be lost
	s.Enqueue(queue.Task{Kind: "quick"}) // at least this is lost, however slow the machine is
	p.promote()
	<-w.gone
	told, lost := s.Ledger.Copy(), map[string]bool{}
	here := s.survey(s.AnotherAt(p.replica.Addr))
	s.begins(here.events, w.seen())
	s.missing(here, safe, told, lost)
	p.door.to(p.replica.Addr)

	s.fencedOff(old)
	s.endsOnce(ghost)
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

// fencedOff checks that a claim whose lease was lost cannot settle a task that another worker has
// claimed.
func (s *stage) fencedOff(old queue.Claim) {
	s.Helper()
	await.Until(s.T, "the old claim is given back", func() bool { return s.Record(old.ID).LeaseLosses == 1 })
	taken := s.take("fence", "new", time.Minute)
	if v := s.report(old, "old"); v.Accepted() || taken.ID != old.ID || taken.Epoch != old.Epoch+1 {
		s.Errorf("the report of the old claim (epoch %d) is %+v, the new claim has epoch %d; want the old one refused, and the next epoch", old.Epoch, v, taken.Epoch)
	}
	if v := s.report(taken, "new"); !v.Accepted() {
		s.Errorf("the report of the new claim is %+v, want it accepted", v)
	}
}

// endsOnce checks the end of a task whose claim the replica did not get. The next claim has the same
// epoch, and still only the next worker can settle the task.
func (s *stage) endsOnce(ghost queue.Claim) {
	s.Helper()
	heir := s.take("ghost", "heir", time.Minute)
	a, b := s.report(ghost, "ghost"), s.report(heir, "heir")
	if a.Accepted() || !b.Accepted() || ghost.ID != heir.ID {
		s.Errorf("lost claim: epoch %d; next claim: epoch %d; their reports: %+v and %+v; want only the second accepted, of the same task", ghost.Epoch, heir.Epoch, a, b)
	}
	s.Logf("the report of the lost claim (epoch %d) is %+v, of the next one (epoch %d) %+v", ghost.Epoch, a, heir.Epoch, b)
}

// claimOne enqueues a task in its own queue and fetches it, with a short lease.
func (s *stage) claimOne(line, worker string) queue.Claim {
	s.Helper()
	s.Enqueue(queue.Task{Kind: line, Queue: line})
	return s.take(line, worker, 1500*time.Millisecond)
}

// take fetches a task.
func (s *stage) take(line, worker string, lease time.Duration) queue.Claim {
	s.Helper()
	trip, err := claim.Of(s.Q).Fetch(s.Context(), 0, worker, claim.Ask{N: 1, Seq: 1, Lease: lease, Quotas: []claim.Quota{{Queue: line, N: 1}}})
	if err != nil || len(trip.Claims) != 1 {
		s.Fatalf("Fetch = %+v, %v, want one claim", trip, err)
	}
	return trip.Claims[0]
}

// report completes a claim, and returns the verdict.
func (s *stage) report(c queue.Claim, worker string) queue.Verdict {
	s.Helper()
	trip, err := claim.Of(s.Q).Settle(s.Context(), 0, worker, queue.NewCall(), []queue.Outcome{{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete, Result: []byte(worker)}}, claim.Ask{})
	if err != nil {
		s.Fatal(err)
	}
	return trip.Verdicts[0]
}
