package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
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
	Odd      []string // keys that are not ours
}

// atOnce is how many keys and records are read at once.
const atOnce = 500

// keyTypes says what type each kind of key has; a colon means that a name follows.
var keyTypes = map[string]string{
	"": "hash", "spec:": "string", "state:": "string", "payload:": "string", "result:": "string", "children:": "list", "ready:": "zset", "queue:": "hash",
	"wake:": "list", "dead:": "zset", "claims:": "zset", "worker:": "hash", "queues": "set", "deadlines": "zset",
	"limits": "zset", "delayed": "zset", "waits": "zset", "wait:": "hash", "pending:": "zset", "settled:": "list", "patience:": "zset", "journal:": "hash", "workers": "zset", "draining": "zset", "throttled": "zset", "retained": "zset",
	"idem": "hash", "recount": "hash", "forget": "zset", "broken": "zset", "figures:": "hash", "kinds": "set", "events": "stream",
}

// Read reads a partition, with SCAN and in batches.
func Read(ctx context.Context, q *queue.Queue, p int) (*Snapshot, error) {
	s := &Snapshot{
		Tasks: map[string]map[string]string{}, Payloads: map[string]bool{}, Texts: map[string]map[string]bool{"spec:": {}, "state:": {}, "payload:": {}, "result:": {}}, Zsets: map[string]map[string]float64{},
		Hashes: map[string]map[string]string{}, Lists: map[string][]string{}, Sets: map[string][]string{},
	}
	root := q.Root(p)
	keys, err := scan(ctx, q, root)
	if err != nil {
		return nil, err
	}
	for len(keys) > 0 {
		n := min(len(keys), atOnce)
		if err := s.read(ctx, q.Client(), root, keys[:n]); err != nil {
			return nil, err
		}
		keys = keys[n:]
	}
	return s, s.readTasks(ctx, q, p)
}

// readTasks reads the records of the ids that have a spec or a state. One that cannot be
// read is odd.
func (s *Snapshot) readTasks(ctx context.Context, q *queue.Queue, p int) error {
	ids := slices.Sorted(maps.Keys(s.Texts["spec:"]))
	for id := range s.Texts["state:"] {
		if !s.Texts["spec:"][id] {
			ids = append(ids, id)
		}
	}
	for len(ids) > 0 {
		n := min(len(ids), atOnce)
		told, _, err := q.GetSome(ctx, p, ids[:n])
		if errors.Is(err, refusal.ErrWrongType) || errors.Is(err, refusal.ErrBroken) {
			n = 1
			told, _, err = q.GetSome(ctx, p, ids[:n])
			if errors.Is(err, refusal.ErrWrongType) || errors.Is(err, refusal.ErrBroken) {
				s.Odd = append(s.Odd, "task:"+ids[0])
				told, err = []*queue.Record{nil}, nil
			}
		}
		if err != nil {
			return err
		}
		for i, r := range told {
			if r != nil {
				s.Tasks[ids[i]] = r.Fields
				if r.Payload != nil {
					s.Payloads[ids[i]] = true
				}
			}
		}
		ids = ids[len(told):]
	}
	return nil
}

// scan lists the keys of a partition, each once. In a cluster they are on the
// node that has the root.
func scan(ctx context.Context, q *queue.Queue, root string) ([]string, error) {
	var node redis.Cmdable = q.Client()
	if cluster, ok := q.Client().(*redis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, root)
		if err != nil {
			return nil, err
		}
		node = master
	}
	var keys []string
	for _, pattern := range []string{root, root + ":*"} {
		var cursor uint64
		for {
			page, next, err := node.Scan(ctx, cursor, EscapeGlob(pattern, root), 1000).Result()
			if err != nil {
				return nil, err
			}
			keys = append(keys, page...)
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// EscapeGlob keeps the braces and dots of a root from being read as a pattern.
func EscapeGlob(pattern, root string) string {
	escaped := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(root)
	return escaped + strings.TrimPrefix(pattern, root)
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
			name := strings.TrimPrefix(strings.TrimPrefix(key, root), ":")
			kind, id := name, ""
			if at := strings.IndexByte(name, ':'); at >= 0 {
				kind, id = name[:at+1], name[at+1:]
			}
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
