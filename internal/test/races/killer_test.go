package races

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/reaper"
)

// A task that kills its workers ends after its fourth, and no other task ends with it.
func TestATaskThatKillsItsWorkersTakesNoOtherWithIt(t *testing.T) {
	redistest.NoRace(t, "it kills processes")
	t.Parallel()
	s := newStage(t, redistest.Shared(t).Addr, queue.Config{})
	s.Reap(reaper.Config{})
	tasks := make([]queue.Task, 41)
	for i := range tasks {
		tasks[i].Kind = "good"
	}
	tasks[4].Kind = "killer"
	ids := s.Enqueue(tasks...)
	killed := 0
	for running := s.Spawn("mortal"); !s.AllEnded(ids); {
		select {
		case <-running.Gone:
			killed++
			running = s.Spawn("mortal")
		case <-at(time.Now().Add(20 * time.Millisecond)):
		}
	}
	for i, id := range ids {
		r := s.Record(id)
		switch {
		case i == 4 && (r.Reason != queue.ReasonLeaseLost || r.LeaseLosses != 4):
			t.Errorf("the killer is %s, %q, after %d lost leases", r.Status, r.Reason, r.LeaseLosses)
		case i != 4 && r.Status != queue.Completed:
			t.Errorf("%s is %s: %s", id, r.Status, r.Error)
		}
	}
	if killed != 4 {
		t.Errorf("%d workers were killed, want 4", killed)
	}
	s.account(ids)
}

// TestNoInnocentTaskEndsBesideKillers plays random fleets on a clock of the test: workers of several sizes whose processes are
// killed by tasks of the kind killer, and now and then by chance. No other task may end as lost, and each killer must end.
func TestNoInnocentTaskEndsBesideKillers(t *testing.T) {
	t.Parallel()
	deaths, innocents := 0, 0
	for range rounds(4) {
		seed := rand.Uint64()
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			f := newFleet(t, seed)
			f.play()
			deaths, innocents = deaths+f.deaths, innocents+f.good
		})
	}
	t.Logf("%d innocent tasks beside killers, %d deaths", innocents, deaths)
}

// fleet is a set of workers that live in the test.
type fleet struct {
	*testing.T
	q            *queue.Queue
	rdb          redis.UniversalClient
	rand         *rand.Rand
	now          time.Time
	workers      []*fleetWorker
	queues       []string
	made, deaths int
	good         int
}

type fleetWorker struct {
	name    string
	slots   int
	seq     int64
	parted  []bool // by partition: it takes nothing there until it holds nothing
	claims  []*fleetClaim
	dead    bool
	revives time.Time
}

type fleetClaim struct {
	queue.Claim
	partition int
	ends      time.Time
}

func newFleet(t *testing.T, seed uint64) *fleet {
	f := &fleet{T: t, rand: rand.New(rand.NewPCG(seed, 1)), now: testclock.Start}
	rdb := redistest.Shared(t).Client(t)
	f.rdb = rdb
	f.q = queuetest.Open(t, rdb, queue.Config{Namespace: redistest.Namespace(t), Partitions: 1 + f.rand.IntN(3), Library: testclock.Library(t, rdb)})
	f.queues = []string{"default", "other"}[:1+f.rand.IntN(2)]
	for range 1 + f.rand.IntN(5) {
		f.workers = append(f.workers, &fleetWorker{dead: true, slots: []int{1, 3, 10, 50}[f.rand.IntN(4)]})
	}
	return f
}

const fleetStep = 100 * time.Millisecond

// play enqueues tasks for a minute, and continues until all have ended.
func (f *fleet) play() {
	ctx, killers, all := f.Context(), 1+f.rand.IntN(5), []string{}
	var tasks []queue.Task
	for range 300 {
		tasks = append(tasks, queue.Task{Kind: "good", Queue: f.queues[f.rand.IntN(len(f.queues))]})
	}
	for range killers {
		tasks = append(tasks, queue.Task{Kind: "killer", Queue: f.queues[f.rand.IntN(len(f.queues))]})
	}
	f.rand.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	f.good = 300
	kinds := map[string]string{}
	byChance := f.rand.IntN(2) * 2000 // one in so many steps of a worker kills it
	for step := 0; ; step++ {
		if step > 200_000 {
			f.Fatalf("after %v, tasks have not ended", f.now.Sub(testclock.Start))
		}
		if n := min(len(tasks), f.rand.IntN(4)); n > 0 {
			receipts, err := f.q.EnqueueAll(ctx, tasks[:n])
			if err != nil {
				f.Fatal(err)
			}
			for i, r := range receipts {
				all, kinds[r.ID] = append(all, r.ID), tasks[i].Kind
			}
			tasks = tasks[n:]
		}
		for _, w := range f.workers {
			if byChance > 0 && !w.dead && f.rand.IntN(byChance) == 0 {
				f.kill(w)
			}
			f.act(w)
		}
		f.advance()
		if step%50 == 0 && len(tasks) == 0 && f.ended(all) {
			break
		}
	}
	f.Logf("%d workers, %d queues, %d partitions, by chance %d: %d deaths of %d killers in %v", len(f.workers), len(f.queues), f.q.Partitions(), byChance, f.deaths, killers, f.now.Sub(testclock.Start))
	for _, id := range all {
		r, err := f.q.Get(ctx, id)
		if err != nil {
			f.Fatal(err)
		}
		if kinds[id] == "good" && r.Status != queue.Completed {
			f.Errorf("%s is %s after %d lost leases: %s", id, r.Status, r.LeaseLosses, r.Error)
		} else if kinds[id] == "killer" && r.Reason != queue.ReasonLeaseLost {
			f.Errorf("the killer %s is %s %s", id, r.Status, r.Reason)
		}
	}
	if byChance == 0 && f.deaths > 4*killers {
		f.Errorf("%d workers died of %d killers", f.deaths, killers)
	}
	findings, err := inspect.Audit(ctx, f.q)
	if err != nil {
		f.Fatal(err)
	}
	for _, finding := range findings {
		if finding.Subject != "clock" { // the key of the test's clock
			f.Error(finding)
		}
	}
}

// advance moves the clock, and sweeps.
func (f *fleet) advance() {
	f.now = f.now.Add(fleetStep)
	for p := range f.q.Partitions() {
		testclock.Set(f, f.rdb, f.q.Root(p), f.now)
		if _, err := reaper.Sweep(f.Context(), f.q, p, "r", 250, time.Second); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *fleet) ended(ids []string) bool {
	records, err := f.q.GetAll(f.Context(), ids)
	if err != nil {
		f.Fatal(err)
	}
	return !slices.ContainsFunc(records, func(r *queue.Record) bool { return !r.Status.Ended() })
}

// kill ends a worker, which starts again after a while with another name.
func (f *fleet) kill(w *fleetWorker) {
	f.deaths++
	w.dead, w.claims, w.revives = true, nil, f.now.Add(time.Duration(f.rand.IntN(5000))*time.Millisecond)
}

// act is one step of a worker: claims end or kill it, and it takes others.
func (f *fleet) act(w *fleetWorker) {
	if w.dead {
		if f.now.Before(w.revives) {
			return
		}
		f.made++
		w.name, w.dead, w.parted = fmt.Sprint("w", f.made), false, make([]bool, f.q.Partitions())
	}
	for _, c := range w.claims {
		if c.Kind == "killer" && !f.now.Before(c.ends) {
			f.kill(w)
			return
		}
	}
	outcomes := map[int][]queue.Outcome{}
	w.claims = slices.DeleteFunc(w.claims, func(c *fleetClaim) bool {
		if f.now.Before(c.ends) {
			return false
		}
		outcomes[c.partition] = append(outcomes[c.partition], queue.Outcome{ID: c.ID, Epoch: c.Epoch, Verb: queue.Complete})
		return true
	})
	for _, p := range slices.Sorted(maps.Keys(outcomes)) {
		if _, err := claim.Of(f.q).Settle(f.Context(), p, w.name, queue.NewCall(), outcomes[p], claim.Ask{}); err != nil {
			f.Fatal(err)
		}
	}
	first := max(slices.Index(w.parted, true), 0)
	for i := range w.parted {
		if p := (first + i) % len(w.parted); !f.take(w, p) {
			return // it is isolated
		}
	}
}

// take takes tasks from a partition. It returns false if the worker must hold no others.
func (f *fleet) take(w *fleetWorker, p int) bool {
	here := 0
	for _, c := range w.claims {
		if c.partition == p {
			here++
		}
	}
	w.seq++
	a := claim.Ask{N: w.slots - len(w.claims), Seq: w.seq, Lease: 10 * time.Second, Elsewhere: len(w.claims) - here}
	for _, name := range f.queues {
		a.Quotas = append(a.Quotas, claim.Quota{Queue: name, N: a.N})
	}
	if a.N == 0 {
		if _, err := claim.Of(f.q).Heartbeat(f.Context(), p, w.name, a.Lease, 0, nil); err != nil {
			f.Fatal(err)
		}
		return !w.parted[p]
	}
	reply, err := claim.Of(f.q).Fetch(f.Context(), p, w.name, a)
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range reply.Claims {
		takes := time.Duration(1+f.rand.IntN(30)) * fleetStep
		w.claims = append(w.claims, &fleetClaim{c, p, f.now.Add(takes)})
	}
	w.parted[p] = reply.Alone
	return !reply.Alone
}
