package curfewtest

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// Get returns a task. The test fails if there is no such task.
func (s *Stage) Get(id string) *queue.Record {
	s.tb.Helper()
	r, err := s.Queue.Get(s.ctx, id)
	if errors.Is(err, refusal.ErrNotFound) {
		s.tb.Fatalf("There is no task %s: the id is wrong, or its record was removed after its retention "+
			"(by default 15 min after COMPLETED, 7 days after FAILED or CANCELLED; Task.Retention sets it).", id)
	}
	if err != nil {
		s.tb.Fatalf("curfewtest: %v", err)
	}
	return r
}

// Tasks returns the tasks of a kind, or all tasks if kind is "", in the order in which they were enqueued. It
// includes tasks that have ended while their records are kept.
func (s *Stage) Tasks(kind string) []*queue.Record {
	s.tb.Helper()
	ids, err := s.ids()
	if err != nil {
		s.tb.Fatalf("curfewtest: list the tasks: %v", err)
	}
	records, err := s.Queue.GetAll(s.ctx, ids)
	if err != nil {
		s.tb.Fatalf("curfewtest: %v", err)
	}
	records = slices.DeleteFunc(records, func(r *queue.Record) bool { return r == nil || kind != "" && r.Kind != kind })
	slices.SortFunc(records, func(a, b *queue.Record) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return records
}

func (s *Stage) ids() ([]string, error) {
	var ids []string
	for p := range s.Queue.Partitions() {
		node, err := s.Queue.Engine().Node(s.ctx, p)
		if err != nil {
			return nil, err
		}
		prefix := s.Queue.Root(p) + ":spec:"
		keys := node.Scan(s.ctx, 0, prefix+"*", 1000).Iterator()
		for keys.Next(s.ctx) {
			ids = append(ids, strings.TrimPrefix(keys.Val(), prefix))
		}
		if err := keys.Err(); err != nil {
			return nil, err
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil // a scan may return a key twice
}

// AssertStatus reports an error if a task does not have a status. It returns the task.
func (s *Stage) AssertStatus(id string, want queue.Status) *queue.Record {
	s.tb.Helper()
	r := s.Get(id)
	if r.Status != want {
		s.tb.Error(s.sentence(r, string(want)))
	}
	return r
}

// MustComplete returns the result of a task. It ends the test if the task is not COMPLETED.
func (s *Stage) MustComplete(id string) []byte {
	s.tb.Helper()
	r := s.Get(id)
	if r.Status != queue.Completed {
		s.tb.Fatal(s.sentence(r, string(queue.Completed)))
	}
	return r.Result
}

// AssertTimedOut reports an error if a task has not timed out. It returns the task, whose TimeoutType names the limit
// that has passed.
func (s *Stage) AssertTimedOut(id string) *queue.Record {
	s.tb.Helper()
	r := s.Get(id)
	if !r.TimedOut {
		s.tb.Error(s.sentence(r, "timed out"))
	}
	return r
}

// AssertEnqueued reports an error if there is no task of a kind for which all functions of match return
// true. It returns the first such task, or nil. The task may have ended, if its record is kept.
func (s *Stage) AssertEnqueued(kind string, match ...func(*queue.Record) bool) *queue.Record {
	s.tb.Helper()
	records := s.Tasks("")
	ofKind := slices.DeleteFunc(slices.Clone(records), func(r *queue.Record) bool { return r.Kind != kind })
	for _, r := range ofKind {
		if !slices.ContainsFunc(match, func(accepts func(*queue.Record) bool) bool { return !accepts(r) }) {
			return r
		}
	}
	if len(ofKind) > 0 {
		s.tb.Errorf("Of %s of kind %q none matches:%s", plural(len(ofKind), "task"), kind, s.listed(ofKind, sent))
	} else {
		s.tb.Errorf("There is no task of kind %q.%s", kind, s.kinds(records))
	}
	return nil
}

// AssertNothingLeft reports an error if there are tasks that have not ended.
func (s *Stage) AssertNothingLeft() {
	s.tb.Helper()
	if live := s.live(); len(live) > 0 {
		s.tb.Errorf("%s left:%s", plural(len(live), "task is", "tasks are"), s.listed(live, s.describe))
	}
}

func (s *Stage) live() []*queue.Record {
	s.tb.Helper()
	return slices.DeleteFunc(s.Tasks(""), func(r *queue.Record) bool { return r.Status.Ended() })
}
