package inspect_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// Each sentence of Explain about the future depends on an index. Explain warns if and only if the entry is missing.
func TestExplainWarnsOfAMissingEntry(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := frozen(t, rdb)
		w := &queuetest.Taker{Q: q, Worker: "w"}
		enqueue := func(task queue.Task) string { return queuetest.Enqueue(t, q, task).ID }
		taken := func(task queue.Task) string {
			task.Queue = "taken"
			id := enqueue(task)
			w.Take(t, id, "taken")
			return id
		}
		waiting := func(wait claim.Wait, members ...queue.Task) string {
			id := taken(queue.Task{})
			for i, m := range members {
				m.ID, m.Kind = id+"."+string(rune('a'+i)), "k"
				wait.Members = append(wait.Members, claim.Member{ID: enqueue(m)})
			}
			wait.Entry, wait.Digest = 1, "d"
			s := claim.Suspension{Agent: id, Epoch: 1, Worker: "w", Wait: wait}
			if _, err := claim.Of(q).Suspend(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			return id
		}
		minute := time.Minute
		owner := enqueue(queue.Task{Timeout: minute, Queue: "owners"})
		for _, c := range []struct {
			claim, id, key, entry string // the key without its root; the entry is the task's if it is empty
			says                  string
		}{
			{"PENDING, in line", enqueue(queue.Task{}), "ready:default", "", "it is missing from the line of its queue"},
			{"PENDING, in line, and its deadline", enqueue(queue.Task{Timeout: minute}), "deadlines", "", "on the clock of deadlines"},
			{"PENDING, in line, and its limit", enqueue(queue.Task{QueueTimeout: minute}), "limits", "", "on the clock of limits"},
			{"PENDING, in line, and its warning", enqueue(queue.Task{Timeout: minute, WarnAt: 0.5}), "limits", "", "on the clock of limits"},
			{"PENDING, delayed", enqueue(queue.Task{Delay: minute}), "delayed", "", "on the clock of delayed tasks"},
			{"PENDING, a timer", enqueue(queue.Task{Timer: true, Delay: minute}), "delayed", "", "on the clock of delayed tasks"},
			{"PENDING, a promise", enqueue(queue.Task{Promise: true, Timeout: minute}), "deadlines", "", "on the clock of deadlines"},
			{"PENDING, a child", enqueue(queue.Task{ID: owner + ".1"}), "deadlines", owner, "its owner is not on the clock of deadlines"},
			{"RUNNING, and its worker", taken(queue.Task{}), "claims:w", "", "its worker does not hold it"},
			{"RUNNING, and its deadline", taken(queue.Task{Timeout: minute}), "deadlines", "", "on the clock of deadlines"},
			{"RUNNING, and its attempt", taken(queue.Task{AttemptTimeout: minute}), "limits", "", "on the clock of limits"},
			{"RUNNING, and the lease", taken(queue.Task{}), "workers", "w", "its worker is not on the clock of workers"},
			{"WAITING, and its limit", waiting(claim.Wait{Limit: minute}, queue.Task{Promise: true}), "waits", "", "its wait is not on the clock of waits"},
			{"WAITING, and a deadline of a member", waiting(claim.Wait{}, queue.Task{Promise: true, Timeout: minute}), "deadlines", ".a", "members are missing from indexes"},
			{"WAITING, and a timer", waiting(claim.Wait{}, queue.Task{Timer: true, Delay: minute}), "delayed", ".a", "members are missing from indexes"},
		} {
			lost := func() []string {
				e, err := inspect.Explain(t.Context(), q, c.id)
				if err != nil {
					t.Fatal(err)
				}
				var all []string
				for _, warning := range e.Warnings {
					if warning.Word == inspect.WarnLost {
						all = append(all, warning.Text)
					}
				}
				if s := e.String(); len(all) > 0 && strings.Contains(s, "given back by the next sweep") {
					t.Errorf("%s: Explain says that a sweep gives the task back, beside a warning that its entry is lost: %s", c.claim, s)
				}
				return all
			}
			if all := lost(); len(all) > 0 {
				t.Errorf("%s: with its entry, the warnings are %q, want none", c.claim, all)
			}
			entry := c.entry
			if entry == "" || entry[0] == '.' {
				entry = c.id + entry
			}
			key := q.Root(0) + ":" + c.key
			score, err := rdb.ZScore(t.Context(), key, entry).Result()
			if err != nil {
				t.Fatalf("%s: %v", c.claim, err)
			}
			rdb.ZRem(t.Context(), key, entry)
			if all := lost(); !slices.ContainsFunc(all, func(text string) bool { return strings.Contains(text, c.says) }) {
				t.Errorf("%s: without its entry, the warnings are %q, want one that says %q", c.claim, all, c.says)
			}
			rdb.ZAdd(t.Context(), key, redis.Z{Score: score, Member: entry})
		}
	})
}
