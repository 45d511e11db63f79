package audit

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

const (
	// together is the number of tasks that one script reads. The script takes some 15 µs for each.
	together = 100
	// journalAtOnce is the number of journal entries in a reply. It is small, because an entry may be large.
	journalAtOnce = 10
)

// reader reads a partition. Each of its commands takes a bounded time.
type reader struct {
	*queue.Queue
	partition int
	root      string
}

// eachKey calls do with the keys of the partition, some at a time. A key that exists during the whole
// scan is passed at least once, perhaps twice.
func (r *reader) eachKey(ctx context.Context, do func(keys []string) error) error {
	node, err := r.Engine().Node(ctx, r.partition)
	if err != nil {
		return err
	}
	for cursor := uint64(0); ; {
		keys, next, err := node.Scan(ctx, cursor, engine.KeysFrom(r.root+":"), atOnce).Result()
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			if err := do(keys); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// pages follows a cursor to its end. A key of the wrong type has no pages: it is reported as odd elsewhere.
func pages(page func(cursor uint64) (next uint64, err error)) error {
	for cursor := uint64(0); ; {
		next, err := page(cursor)
		if redis.HasErrorPrefix(err, "WRONGTYPE") {
			return nil
		}
		if cursor = next; err != nil || cursor == 0 {
			return err
		}
	}
}

// eachMember calls do with the members of a sorted set and their scores, some at a time.
func (r *reader) eachMember(ctx context.Context, key string, do func(members map[string]float64) error) error {
	return pages(func(cursor uint64) (uint64, error) {
		words, next, err := r.Client().ZScan(ctx, r.root+":"+key, cursor, "", atOnce).Result()
		members := make(map[string]float64, len(words)/2)
		for i := 0; i+1 < len(words); i += 2 {
			members[words[i]] = score(words[i+1])
		}
		if err == nil && len(members) > 0 {
			err = do(members)
		}
		return next, err
	})
}

// eachField calls do with the fields of a hash, about n at a time.
func (r *reader) eachField(ctx context.Context, key string, n int64, do func(fields map[string]string) error) error {
	return pages(func(cursor uint64) (uint64, error) {
		words, next, err := r.Client().HScan(ctx, r.root+":"+key, cursor, "", n).Result()
		fields := make(map[string]string, len(words)/2)
		for i := 0; i+1 < len(words); i += 2 {
			fields[words[i]] = words[i+1]
		}
		if err == nil && len(fields) > 0 {
			err = do(fields)
		}
		return next, err
	})
}

// eachElement calls do with the elements of a list, some at a time.
func (r *reader) eachElement(ctx context.Context, key string, do func(elements []string)) error {
	return pages(func(from uint64) (uint64, error) {
		elements, err := r.Client().LRange(ctx, r.root+":"+key, int64(from), int64(from)+atOnce-1).Result()
		do(elements)
		if len(elements) < atOnce {
			return 0, err
		}
		return from + atOnce, err
	})
}

// eachName calls do with the members of a set, some at a time.
func (r *reader) eachName(ctx context.Context, key string, do func(names []string) error) error {
	return pages(func(cursor uint64) (uint64, error) {
		names, next, err := r.Client().SScan(ctx, r.root+":"+key, cursor, "", atOnce).Result()
		if err == nil && len(names) > 0 {
			err = do(names)
		}
		return next, err
	})
}

// ask sends commands in pipelines of a bounded length. A command on a key of the wrong type has
// no result, and is not an error.
func (r *reader) ask(ctx context.Context, commands []*redis.Cmd) error {
	for chunk := range slices.Chunk(commands, atOnce) {
		engine.Pipelined(ctx, r.Client(), func(pipe redis.Pipeliner) {
			for _, c := range chunk {
				pipe.Process(ctx, c)
			}
		})
		for _, c := range chunk {
			if err := c.Err(); err != nil && err != redis.Nil && !redis.HasErrorPrefix(err, "WRONGTYPE") {
				return err
			}
		}
	}
	return nil
}

// command returns a command on a key of this partition.
func (r *reader) command(ctx context.Context, name, key string, words ...string) *redis.Cmd {
	args := make([]any, 2, 2+len(words))
	args[0], args[1] = name, r.root+":"+key
	for _, w := range words {
		args = append(args, w)
	}
	return redis.NewCmd(ctx, args...)
}

// readTasks reads the records that exist into a snapshot. A record that cannot be read is added to Odd.
func (r *reader) readTasks(ctx context.Context, s *Snapshot, ids []string) error {
	slices.Sort(ids)
	for ids = slices.Compact(ids); len(ids) > 0; {
		n := min(len(ids), together)
		records, _, err := r.GetSome(ctx, r.partition, ids[:n])
		if errors.Is(err, refusal.ErrWrongType) || errors.Is(err, refusal.ErrBroken) {
			n = 1
			records, _, err = r.GetSome(ctx, r.partition, ids[:n])
			if errors.Is(err, refusal.ErrWrongType) || errors.Is(err, refusal.ErrBroken) {
				s.Odd = append(s.Odd, "task:"+ids[0])
				records, err = []*queue.Record{nil}, nil
			}
		}
		if err != nil {
			return err
		}
		for i, t := range records {
			if t != nil {
				s.Tasks[ids[i]] = t.Fields
				if t.Payload != nil {
					s.Payloads[ids[i]] = true
				}
			}
		}
		ids = ids[len(records):]
	}
	return nil
}

// nearTo returns the tasks that are needed to check a task, besides the members of its wait: its
// owners, and the task that it is a hook of.
func nearTo(id string) (near []string) {
	for at := strings.LastIndexAny(id, ".!"); at > 0; at = strings.LastIndexAny(id[:at], ".!") {
		near = append(near, id[:at])
	}
	return near
}
