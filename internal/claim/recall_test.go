package claim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
)

// A wait is in the journal when it is over.
func TestRecallReadsTheMembersOfASmallWait(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		for _, row := range []struct{ members, bytes, want int }{{1, 0, 1}, {100, 0, 100}, {101, 0, 0}, {4, 300_000, 2}} {
			agent := queuetest.Enqueue(t, q, queue.Task{Queue: fmt.Sprint("agents", row.members)}).ID
			w := &queuetest.Taker{Q: q, Worker: queue.NewCall()}
			held := w.Take(t, agent, fmt.Sprint("agents", row.members))
			note := claim.Note{Entries: []claim.Entry{{Number: 1, Text: []byte("first")}}}
			if err := claim.Of(q).Remember(t.Context(), agent, held.Epoch, w.Worker, note); err != nil {
				t.Fatal(err)
			}
			s := claim.Suspension{Agent: agent, Epoch: held.Epoch, Worker: w.Worker, Wait: claim.Wait{Entry: 2, Digest: "d", Mode: queue.WaitAny, Limit: time.Hour}}
			for i := range row.members {
				s.Children = append(s.Children, queue.Task{ID: fmt.Sprint(agent, ".", i), Kind: "k", Promise: true})
				s.Wait.Members = append(s.Wait.Members, claim.Member{ID: s.Children[i].ID})
			}
			if o, err := claim.Of(q).Suspend(t.Context(), s); o != nil || err != nil {
				t.Fatal(o, err)
			}
			if m, err := claim.Of(q).Recall(t.Context(), agent); err != nil || len(m.Children) > 0 {
				t.Errorf("while it waits, Recall has %d members, %v, want none", len(m.Children), err)
			}
			for _, c := range s.Children[:min(4, row.members)] { // the first ends the wait
				if r, err := q.Resolve(t.Context(), c.ID, make([]byte, row.bytes)); err != nil || !r.Done {
					t.Fatal(r, err)
				}
			}
			m, err := claim.Of(q).Recall(t.Context(), agent)
			if err != nil || len(m.Children) != row.want || m.Journal[1] != "first" {
				t.Errorf("a wait of %d members: Recall has %d of them, journal %v, %v, want %d", row.members, len(m.Children), m.Journal, err, row.want)
			}
			for name, r := range m.Children {
				if r == nil || r.ID != agent+"."+name || r.Role != queue.RolePromise {
					t.Errorf("member %s is %+v", name, r)
				}
			}
		}
	})
}

func TestAChildThatDoesNotExistIsNil(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		agent := queuetest.Enqueue(t, q, queue.Task{}).ID
		queuetest.Enqueue(t, q, queue.Task{ID: agent + ".page-1"})
		names := []string{"page-1", "none"}
		for i := range 600 { // more than a call reads
			names = append(names, fmt.Sprint("none-", i))
		}
		children, err := claim.Of(q).Children(t.Context(), agent, names)
		if err != nil || len(children) != len(names) {
			t.Fatalf("Children = %d, %v, want %d", len(children), err, len(names))
		}
		for name, r := range children {
			if (r != nil) != (name == "page-1") || r != nil && r.ID != agent+".page-1" {
				t.Errorf("child %s is %+v", name, r)
			}
		}
	})
}

// A reply of recall has about 512 KiB of records, and a reply of read about 4 MiB.
func TestChildrenWithLargeResultsAreReadInSeveralCalls(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		agent := queuetest.Enqueue(t, q, queue.Task{}).ID
		var names, ids []string
		for i := range 6 {
			names = append(names, fmt.Sprint(i))
			ids = append(ids, queuetest.Enqueue(t, q, queue.Task{ID: fmt.Sprint(agent, ".", i), Promise: true}).ID)
			if _, err := q.Resolve(t.Context(), ids[i], make([]byte, 1<<20)); err != nil {
				t.Fatal(err)
			}
		}
		children, err := claim.Of(q).Children(t.Context(), agent, names)
		if err != nil || len(children) != 6 {
			t.Fatalf("Children = %d, %v, want 6", len(children), err)
		}
		for name, r := range children {
			if r == nil || len(r.Result) != 1<<20 {
				t.Errorf("child %s is %v, want one with 1 MiB", name, r != nil)
			}
		}
		some, at, err := q.GetSome(t.Context(), queuetest.Partition(t, agent), ids)
		if err != nil || len(some) < 1 || len(some) >= 6 || at.IsZero() {
			t.Errorf("GetSome = %d records at %v, %v, want some of the 6", len(some), at, err)
		}
		all, err := q.GetAll(t.Context(), ids)
		if err != nil || len(all) != 6 {
			t.Fatalf("GetAll = %d, %v, want 6", len(all), err)
		}
		for i, r := range all {
			if r == nil || r.ID != ids[i] || len(r.Result) != 1<<20 {
				t.Errorf("record %d is not that of %s", i, ids[i])
			}
		}
	})
}
