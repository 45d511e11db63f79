package races

import (
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/eventlog"
	"github.com/curfew-dev/curfew/queue"
)

// event is one of the event stream.
type event struct {
	id, kind     string
	at, deadline int64
	fields       map[string]any
}

// events reads a partition's stream, from an entry on ("-": from the first).
func (s *stage) events(from string) (all []event, last string) {
	s.Helper()
	const page = 5000
	for {
		entries, err := s.rdb.XRangeN(s.ctx, s.q.EventsKey(0), from, "+", page).Result()
		if err != nil {
			s.Fatal(err)
		}
		for _, e := range entries {
			all, last = append(all, readEvents(e)...), e.ID
		}
		if len(entries) < page {
			return all, last
		}
		from = "(" + last
	}
}

func readEvents(entry redis.XMessage) (events []event) {
	for _, about := range eventlog.Events(entry) {
		word := func(name string) string { s, _ := about[name].(string); return s }
		number := func(name string) int64 { n, _ := strconv.ParseInt(word(name), 10, 64); return n }
		events = append(events, event{id: word("task_id"), kind: word("kind"), at: number("at"), deadline: number("deadline_at"), fields: about})
	}
	return events
}

// terminal tells whether an event is the end of a task.
func (e event) terminal() bool {
	switch e.kind {
	case "task_completed", "task_failed", "task_cancelled", "task_timed_out":
		return true
	}
	return false
}

// account checks that a namespace adds up once all is over. ids are all tasks that
// it ever had. It returns their records.
func (s *stage) account(ids []string) map[string]*queue.Record {
	s.Helper()
	list, err := s.q.GetAll(s.ctx, ids)
	if err != nil {
		s.Fatal(err)
	}
	records := make(map[string]*queue.Record, len(ids))
	for i, r := range list {
		switch {
		case r == nil:
			s.complain("%s is lost: it has no record", ids[i])
		case !r.Status.Ended():
			s.complain("%s is still %s", r.ID, r.Status)
		}
		records[ids[i]] = r
	}
	if len(records) != len(ids) {
		s.Errorf("%d ids are of %d tasks", len(ids), len(records))
	}
	s.checkEvents(records)
	s.checkCounts(records)
	s.audit()
	return records
}

// checkEvents: one end a task, the one that its record tells, at a time that fits.
func (s *stage) checkEvents(records map[string]*queue.Record) {
	s.Helper()
	ends := map[string]int{}
	events, _ := s.events("-")
	for _, e := range events {
		r := records[e.id]
		if r == nil {
			s.complain("the event %s is of %s, which is no task", e.kind, e.id)
			continue
		}
		if !e.terminal() {
			continue
		}
		ends[e.id]++
		if want := endOf(r); e.kind != want {
			s.complain("%s has the event %s, its record says %s", e.id, e.kind, want)
		}
		if until := r.Until.UnixMilli(); !r.Until.IsZero() {
			if e.kind == "task_completed" && e.at > until {
				s.complain("%s was completed %d ms after its deadline", e.id, e.at-until)
			}
			if r.TimeoutType == "execution" && e.at <= until {
				s.complain("%s timed out %d ms before it could", e.id, until-e.at)
			}
		}
	}
	for id := range records {
		if ends[id] != 1 {
			s.complain("%s has %d ends in the events, want 1", id, ends[id])
		}
	}
}

// endOf is the event that ends a task as its record tells.
func endOf(r *queue.Record) string {
	if r.TimedOut {
		return "task_timed_out"
	}
	return "task_" + strings.ToLower(string(r.Status))
}

// checkCounts: the counters say what the records say, and nothing is left anywhere.
func (s *stage) checkCounts(records map[string]*queue.Record) {
	s.Helper()
	want := map[string]queue.QueueStats{}
	for _, r := range records {
		if r == nil {
			continue
		}
		c := want[r.Queue]
		c.Queue = r.Queue
		c.Enqueued++
		switch r.Status {
		case queue.Completed:
			c.Completed++
		case queue.Failed:
			c.Failed++
			c.Dead++
		case queue.Cancelled:
			c.Cancelled++
			c.Dead++
		}
		if r.TimedOut {
			c.TimedOut++
		}
		want[r.Queue] = c
	}
	stats, err := s.q.Stats(s.ctx)
	if err != nil {
		s.Fatal(err)
	}
	for _, got := range stats.Queues {
		if got != want[got.Queue] {
			s.complain("the counters of %s are\n%+v, the records say\n%+v", got.Queue, got, want[got.Queue])
		}
	}
	if len(stats.Queues) != len(want) {
		s.complain("%d queues are known, the records are of %d", len(stats.Queues), len(want))
	}
	if stats.Deadlines+stats.Limits+stats.Delayed+stats.Draining+stats.Broken != 0 {
		s.complain("something is left on a clock: %+v", stats)
	}
}

func (s *stage) audit() {
	s.Helper()
	findings, err := inspect.Audit(s.ctx, s.q)
	if err != nil {
		s.Fatal(err)
	}
	for _, f := range findings {
		s.complain("audit: %s", f)
	}
}

// complain is Errorf that gives up when it is a flood.
func (s *stage) complain(format string, args ...any) {
	s.Helper()
	s.Errorf(format, args...)
	if s.complaints++; s.complaints == 20 {
		s.Fatal("and so on")
	}
}
