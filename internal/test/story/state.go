package story

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// state prints every key of the namespace, a line each, so that a story shows every change.
// It leaves out the clock, the events and the figures, which have commands of their own, the
// root, and fields that stories do not need: version, created_at, calls, digests and labels, the
// kind k and the queue default. state waits prints the keys of that name alone.
func (s *stage) state(w words) []string {
	keys, err := s.rdb.Keys(s.ctx, s.root+"*").Result()
	if err != nil {
		return []string{err.Error()}
	}
	lines := s.tasks(keys)
	for _, key := range keys {
		name := strings.TrimPrefix(strings.TrimPrefix(key, s.root), ":")
		if name == "" || name == "clock" || name == "events" || name == "kinds" || strings.HasPrefix(name, "figures:") {
			continue
		}
		if kind, _, _ := strings.Cut(name, ":"); kind == "spec" || kind == "state" || kind == "payload" || kind == "result" {
			continue
		}
		if name, id, ok := strings.Cut(name, ":"); ok {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("%-10s %s  %s", name, short(id), s.value(key)), " "))
		} else {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("%-10s %s", name, s.value(key)), " "))
		}
	}
	if len(w.plain) > 0 {
		lines = slices.DeleteFunc(lines, func(line string) bool { return !slices.Contains(w.plain, strings.Fields(line)[0]) })
	}
	slices.Sort(lines)
	if len(lines) == 0 {
		return []string{"empty"}
	}
	return lines
}

// tasks formats each record and each payload on a line. If a record cannot be read, it
// formats the first lines of its spec and state.
func (s *stage) tasks(keys []string) []string {
	ids := map[string]bool{}
	for _, key := range keys {
		kind, id, _ := strings.Cut(strings.TrimPrefix(key, s.root+":"), ":")
		if kind == "spec" || kind == "state" {
			ids[id] = true
		}
	}
	var lines []string
	for id := range ids {
		r, err := s.q.Get(s.ctx, id)
		if err != nil {
			for _, kind := range []string{"spec", "state"} {
				if text := s.rdb.Get(s.ctx, s.root+":"+kind+":"+id).Val(); text != "" {
					first, _, _ := strings.Cut(text, "\n")
					lines = append(lines, fmt.Sprintf("%-10s %s  %s", kind, short(id), first))
				}
			}
			continue
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%-10s %s  %s", "task", short(id), s.fields(r.Fields)), " "))
		if len(r.Payload) > 0 {
			lines = append(lines, fmt.Sprintf("%-10s %s  %s", "payload", short(id), r.Payload))
		}
	}
	for _, key := range keys { // texts without a record
		kind, id, _ := strings.Cut(strings.TrimPrefix(key, s.root+":"), ":")
		if (kind == "payload" || kind == "result") && !ids[id] {
			lines = append(lines, fmt.Sprintf("%-10s %s  %s", kind, short(id), s.value(key)))
		}
	}
	return lines
}

func (s *stage) value(key string) string {
	switch kind := s.rdb.Type(s.ctx, key).Val(); kind {
	case "string":
		return s.rdb.Get(s.ctx, key).Val()
	case "list":
		return strings.Join(names(s.rdb.LRange(s.ctx, key, 0, -1).Val()), " ")
	case "set":
		members := names(s.rdb.SMembers(s.ctx, key).Val())
		slices.Sort(members)
		return strings.Join(members, " ")
	case "zset":
		return s.scored(key, s.rdb.ZRangeWithScores(s.ctx, key, 0, -1).Val())
	case "hash":
		return s.fields(s.rdb.HGetAll(s.ctx, key).Val())
	default:
		return kind
	}
}

// scored formats the members in order, with their scores if these are instants or seqs.
func (s *stage) scored(key string, members []redis.Z) string {
	var words []string
	for _, m := range members {
		name := short(fmt.Sprint(m.Member))
		if !strings.Contains(key, ":ready:") && !strings.Contains(key, ":held:") && !strings.Contains(key, ":pending:") {
			name += "@" + since(fmt.Sprintf("%.0f", m.Score))
		}
		words = append(words, name)
	}
	return strings.Join(words, " ")
}

// fields formats a hash: the status first, then the fields by name.
func (s *stage) fields(hash map[string]string) string {
	var words []string
	for name, value := range hash {
		switch {
		case name == "version" || name == "created_at" || name == "number" || name == "of_number" || name == "call" || strings.HasPrefix(name, "call ") || name == "requeued_by" || name == "late_by" || name == "cancelled_by" || name == "drained_by" || name == "suspended_by" || name == "bytes" || name == "digest" || name == "label" || name == "status" || name == "kind" && value == "k" || name == "queue" && value == "default":
			continue
		case strings.HasPrefix(value, "wait "):
			value = journal(value)
		case strings.HasSuffix(name, "_at") || strings.HasPrefix(name, "until") || name == "since":
			value = since(strings.TrimSuffix(value, ".000")) // full_at has fractions of a ms
		case strings.HasSuffix(name, "_of"):
			value = short(value)
		}
		if strings.Contains(value, " ") {
			value = fmt.Sprintf("%q", value)
		}
		words = append(words, name+"="+value)
	}
	slices.Sort(words)
	if hash["status"] != "" {
		words = append([]string{hash["status"]}, words...)
	}
	return strings.Join(words, " ")
}

func names(ids []string) []string {
	for i := range ids {
		ids[i] = short(ids[i])
	}
	return ids
}
