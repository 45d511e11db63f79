package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
)

// Snapshot is all that a partition holds, by key without its root.
type Snapshot struct {
	Tasks    map[string]map[string]string  // by id
	Payloads map[string]bool               // the ids of tasks that have a payload
	Texts    map[string]map[string]bool    // ids that have a text, by kind of key: "spec:", "state:", "payload:", "result:"
	Zsets    map[string]map[string]float64 // by key, then member
	Hashes   map[string]map[string]string
	Lists    map[string][]string
	Sets     map[string][]string
	Odd      []string // keys of other programs, and keys that cannot be read
}

// atOnce is how many elements a command replies with, and how many commands go in a pipeline.
const atOnce = 500

// keyTypes maps each kind of key to its Redis type. A kind with a colon is followed by a name.
var keyTypes = map[string]string{
	"": "hash", "spec:": "string", "state:": "string", "payload:": "string", "result:": "string", "children:": "list", "ready:": "zset", "held:": "zset", "holds": "zset", "isolation": "hash", "queue:": "hash",
	"wake:": "list", "dead:": "zset", "claims:": "zset", "worker:": "hash", "queues": "set", "deadlines": "zset",
	"flows": "hash", "flow:": "hash", "limits": "zset", "delayed": "zset", "waits": "zset", "wait:": "hash", "pending:": "zset", "settled:": "list", "ends:": "list", "patience:": "zset", "journal:": "hash", "workers": "zset", "draining": "zset", "throttled": "zset", "retained": "zset",
	"idem": "hash", "recount": "hash", "forget": "zset", "broken": "zset", "figures:": "hash", "kinds": "set", "events": "stream",
}

func newSnapshot() *Snapshot {
	return &Snapshot{
		Tasks: map[string]map[string]string{}, Payloads: map[string]bool{},
		Texts: map[string]map[string]bool{"spec:": {}, "state:": {}, "payload:": {}, "result:": {}},
		Zsets: map[string]map[string]float64{}, Hashes: map[string]map[string]string{},
		Lists: map[string][]string{}, Sets: map[string][]string{},
	}
}

// Read reads a whole partition, each key in one command. It is for small partitions; [Run] can read any.
func Read(ctx context.Context, q *queue.Queue, p int) (*Snapshot, error) {
	s, root := newSnapshot(), q.Root(p)
	r := &reader{Queue: q, partition: p, root: root}
	keys := []string{root}
	err := r.eachKey(ctx, func(page []string) error {
		keys = append(keys, page...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for chunk := range slices.Chunk(keys, atOnce) {
		if err := s.read(ctx, q.Client(), root, chunk); err != nil {
			return nil, err
		}
	}
	ids := slices.Collect(maps.Keys(s.Texts["spec:"]))
	for id := range s.Texts["state:"] {
		if !s.Texts["spec:"][id] {
			ids = append(ids, id)
		}
	}
	return s, r.readTasks(ctx, s, ids)
}

// splitKey splits a key: its name without the root, its kind, and the id or name after the kind.
func splitKey(key, root string) (name, kind, whose string) {
	name = strings.TrimPrefix(strings.TrimPrefix(key, root), ":")
	if at := strings.IndexByte(name, ':'); at >= 0 {
		return name, name[:at+1], name[at+1:]
	}
	return name, name, ""
}

func (s *Snapshot) read(ctx context.Context, rdb redis.UniversalClient, root string, keys []string) error {
	types := make([]*redis.StatusCmd, len(keys))
	if _, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, key := range keys {
			types[i] = pipe.Type(ctx, key)
		}
		return nil
	}); err != nil {
		return err
	}
	var store []func()
	_, err := rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, key := range keys {
			name, kind, id := splitKey(key, root)
			if want, ours := keyTypes[kind]; !ours || want != types[i].Val() && types[i].Val() != "none" {
				s.Odd = append(s.Odd, name)
				continue
			}
			switch keyTypes[kind] {
			case "hash":
				cmd := pipe.HGetAll(ctx, key)
				store = append(store, func() {
					s.Hashes[name] = cmd.Val()
				})
			case "zset":
				cmd := pipe.ZRangeWithScores(ctx, key, 0, -1)
				store = append(store, func() {
					members := map[string]float64{}
					for _, z := range cmd.Val() {
						members[fmt.Sprint(z.Member)] = z.Score
					}
					s.Zsets[name] = members
				})
			case "list":
				cmd := pipe.LRange(ctx, key, 0, -1)
				store = append(store, func() { s.Lists[name] = cmd.Val() })
			case "set":
				cmd := pipe.SMembers(ctx, key)
				store = append(store, func() { s.Sets[name] = cmd.Val() })
			case "string":
				s.Texts[kind][id] = true
			}
		}
		return nil
	})
	for _, keep := range store {
		keep()
	}
	return err
}
