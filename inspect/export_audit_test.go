package inspect

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

	"github.com/curfew-dev/curfew/internal/audit"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// The audit reads all keys with other code than the export. Both must find the same.
func TestAnExportEqualsWhatTheAuditReads(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx := context.Background()
		q, err := queue.Open(ctx, rdb, queue.Config{Partitions: 2, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		var tasks []queue.Task
		for i := range 700 {
			tasks = append(tasks, queue.Task{Kind: "k", Queue: fmt.Sprintf("q%d", i%3), Payload: bytes.Repeat([]byte("p"), i%2), Timeout: time.Hour,
				Delay: time.Duration(i%5/4) * time.Hour, IdempotencyKey: fmt.Sprint("key", i), Retention: time.Duration(i) * time.Second})
		}
		if _, err := q.EnqueueAll(ctx, tasks); err != nil {
			t.Fatal(err)
		}
		for p := range 2 {
			trip, err := claim.Of(q).Fetch(ctx, p, "w", claim.Ask{N: 40, Seq: 3, Lease: time.Hour, Quotas: []claim.Quota{{Queue: "q0", N: 20}, {Queue: "q1", N: 20}}})
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range trip.Claims {
				if _, err := q.Enqueue(ctx, queue.Task{ID: c.ID + ".c", Kind: "k"}); err != nil {
					t.Fatal(err)
				}
				verb := []queue.Verb{queue.Complete, queue.Fail, queue.Release, ""}[i%4]
				if verb == "" {
					continue
				}
				if _, err := claim.Of(q).Settle(ctx, p, "w", queue.NewCall(), []queue.Outcome{{ID: c.ID, Epoch: c.Epoch, Verb: verb, Error: "e", Result: []byte("r")}}, claim.Ask{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for p := range 2 {
			want, err := audit.Read(ctx, q, p)
			if err != nil {
				t.Fatal(err)
			}
			for _, members := range want.Sets {
				slices.Sort(members)
			}
			got := fromExport(t, q, p)
			for name, pair := range map[string][2]any{
				"tasks": {got.Tasks, want.Tasks}, "payloads": {got.Payloads, want.Payloads}, "zsets": {got.Zsets, want.Zsets},
				"hashes": {got.Hashes, want.Hashes}, "lists": {got.Lists, want.Lists}, "sets": {got.Sets, want.Sets},
			} {
				if !reflect.DeepEqual(pair[0], pair[1]) {
					t.Errorf("%s of partition %d are exported as\n%.2000v, and the audit reads\n%.2000v", name, p, pair[0], pair[1])
				}
			}
			if len(want.Tasks) < 350 || len(want.Zsets) < 9 || len(want.Lists) < 20 || len(want.Odd) > 0 {
				t.Errorf("the test lacks variety: %d tasks, %d sorted sets, %d lists, odd %v", len(want.Tasks), len(want.Zsets), len(want.Lists), want.Odd)
			}
		}
	})
}

// fromExport makes the snapshot of a partition from the JSON lines of an export alone.
func fromExport(tb testing.TB, q *queue.Queue, partition int) *audit.Snapshot {
	tb.Helper()
	var out bytes.Buffer
	if err := ExportTo(context.Background(), q, &out); err != nil {
		tb.Fatal(err)
	}
	s := &audit.Snapshot{
		Tasks: map[string]map[string]string{}, Payloads: map[string]bool{}, Zsets: map[string]map[string]float64{},
		Hashes: map[string]map[string]string{}, Lists: map[string][]string{}, Sets: map[string][]string{},
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
			s.Hashes[""] = fields
		case "queue":
			s.Hashes["queue:"+l.Queue] = fields
		case "worker":
			s.Hashes["worker:"+l.Worker] = fields
		case "task":
			s.Tasks[l.ID] = fields
			if l.Payload != nil {
				s.Payloads[l.ID] = true
			}
		case "index":
			addTo(s, key, l.Kind, l.Member, l.Value, l.Score, l.Place)
		}
	}
	for _, members := range s.Sets {
		slices.Sort(members)
	}
	return s
}

func addTo(s *audit.Snapshot, key, kind, member, value string, score float64, place int) {
	switch kind {
	case "zset":
		if s.Zsets[key] == nil {
			s.Zsets[key] = map[string]float64{}
		}
		s.Zsets[key][member] = score
	case "hash":
		if s.Hashes[key] == nil {
			s.Hashes[key] = map[string]string{}
		}
		s.Hashes[key][member] = value
	case "set":
		s.Sets[key] = append(s.Sets[key], member)
	case "list":
		if place == len(s.Lists[key]) {
			s.Lists[key] = append(s.Lists[key], member)
		}
	}
}
