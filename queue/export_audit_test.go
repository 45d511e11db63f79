package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/redistest"
)

// The audit reads all keys in a way of its own; an export must tell the same.
func TestAnExportTellsWhatTheAuditSees(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx := context.Background()
		q, err := Open(ctx, rdb, Config{Partitions: 2, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		var tasks []Task
		for i := range 700 {
			tasks = append(tasks, Task{Kind: "k", Queue: fmt.Sprintf("q%d", i%3), Payload: bytes.Repeat([]byte("p"), i%2), Timeout: time.Hour,
				Delay: time.Duration(i%5/4) * time.Hour, IdempotencyKey: fmt.Sprint("key", i), Retention: time.Duration(i) * time.Second})
		}
		if _, err := q.EnqueueAll(ctx, tasks); err != nil {
			t.Fatal(err)
		}
		for p := range 2 {
			trip, err := q.Fetch(ctx, p, "w", Ask{N: 40, Seq: 3, Lease: time.Hour, Quotas: []Quota{{"q0", 20}, {"q1", 20}}})
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range trip.Claims {
				if _, err := q.Enqueue(ctx, Task{ID: c.ID + ".c", Kind: "k"}); err != nil {
					t.Fatal(err)
				}
				verb := []Verb{Complete, Fail, Release, ""}[i%4]
				if verb == "" {
					continue
				}
				if _, err := q.Settle(ctx, p, "w", NewCall(), []Outcome{{ID: c.ID, Epoch: c.Epoch, Verb: verb, Error: "e", Result: []byte("r")}}, Ask{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for p := range 2 {
			want, err := q.snapshot(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			for _, members := range want.sets {
				slices.Sort(members)
			}
			got := q.fromExport(t, p)
			for name, pair := range map[string][2]any{
				"tasks": {got.tasks, want.tasks}, "payloads": {got.payloads, want.payloads}, "zsets": {got.zsets, want.zsets},
				"hashes": {got.hashes, want.hashes}, "lists": {got.lists, want.lists}, "sets": {got.sets, want.sets},
			} {
				if !reflect.DeepEqual(pair[0], pair[1]) {
					t.Errorf("%s of partition %d are exported as\n%.2000v, and the audit sees\n%.2000v", name, p, pair[0], pair[1])
				}
			}
			if len(want.tasks) < 350 || len(want.zsets) < 9 || len(want.lists) < 20 || len(want.odd) > 0 {
				t.Errorf("the test lacks variety: %d tasks, %d sorted sets, %d lists, odd %v", len(want.tasks), len(want.zsets), len(want.lists), want.odd)
			}
		}
	})
}

// fromExport makes the snapshot of a partition out of the JSON lines of an export, as
// somebody would who knows nothing else.
func (q *Queue) fromExport(tb testing.TB, partition int) *snapshot {
	tb.Helper()
	var out bytes.Buffer
	if err := q.ExportTo(context.Background(), &out); err != nil {
		tb.Fatal(err)
	}
	s := &snapshot{
		tasks: map[string]map[string]string{}, payloads: map[string]bool{}, zsets: map[string]map[string]float64{},
		hashes: map[string]map[string]string{}, lists: map[string][]string{}, sets: map[string][]string{},
	}
	for line := range bytes.Lines(out.Bytes()) {
		var l struct {
			Type, ID, Index, Of, Kind, Member, Value string
			Queue, Worker                            string
			Partition                                int
			Payload                                  *string
			Fields                                   map[string]json.RawMessage
			Score                                    float64
			Place                                    int
		}
		if err := json.Unmarshal(line, &l); err != nil {
			tb.Fatalf("%v: %s", err, line)
		}
		if l.Partition != partition || l.Type == "namespace" || l.Type == "end" {
			continue
		}
		fields := map[string]string{}
		for name, raw := range l.Fields {
			text := string(raw)
			if text[0] == '"' {
				json.Unmarshal(raw, &text)
			}
			fields[name] = text
		}
		key := l.Index
		if l.Of != "" {
			key += ":" + l.Of
		}
		switch l.Type {
		case "partition":
			s.hashes[""] = fields
		case "queue":
			s.hashes["queue:"+l.Queue] = fields
		case "worker":
			s.hashes["worker:"+l.Worker] = fields
		case "task":
			s.tasks[l.ID] = fields
			if l.Payload != nil {
				s.payloads[l.ID] = true
			}
		case "index":
			s.add(key, l.Kind, l.Member, l.Value, l.Score, l.Place)
		}
	}
	for _, members := range s.sets {
		slices.Sort(members)
	}
	return s
}

func (s *snapshot) add(key, kind, member, value string, score float64, place int) {
	switch kind {
	case "zset":
		if s.zsets[key] == nil {
			s.zsets[key] = map[string]float64{}
		}
		s.zsets[key][member] = score
	case "hash":
		if s.hashes[key] == nil {
			s.hashes[key] = map[string]string{}
		}
		s.hashes[key][member] = value
	case "set":
		s.sets[key] = append(s.sets[key], member)
	case "list":
		if place == len(s.lists[key]) {
			s.lists[key] = append(s.lists[key], member)
		}
	}
}
