package redistest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Digest returns a hash of Dump. Two digests are equal if the dumps are. A test compares digests
// before and after a call that must change nothing.
func Digest(tb testing.TB, rdb redis.UniversalClient, prefix string) string {
	tb.Helper()
	return fmt.Sprintf("%x", sha256.Sum256([]byte(Dump(tb, rdb, prefix))))
}

// Dump returns all keys that begin with prefix as text, sorted by key. It has the type, every value,
// and whether the key expires, but not when, because that changes by itself. Equal data give equal
// texts, on a real and on the embedded server. In a cluster it reads all masters.
func Dump(tb testing.TB, rdb redis.UniversalClient, prefix string) string {
	tb.Helper()
	ctx := context.Background()
	keys, err := scan(ctx, rdb, prefix)
	if err != nil {
		tb.Fatalf("dump %s*: %v", prefix, err)
	}
	var text strings.Builder
	for chunk := range slices.Chunk(keys, 500) {
		if err := dump(ctx, rdb, chunk, &text); err != nil {
			tb.Fatalf("dump %s*: %v", prefix, err)
		}
	}
	return text.String()
}

// Diff returns the lines that only one of two dumps has, marked - for before and + for after. Each
// line begins with its key. Diff returns "" if the dumps have the same lines.
func Diff(before, after string) string {
	counts := map[line]int{}
	count(counts, before, -1)
	count(counts, after, 1)
	all := slices.SortedFunc(maps.Keys(counts), func(a, b line) int {
		return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.value, b.value))
	})
	var text strings.Builder
	for _, l := range all {
		n := counts[l]
		text.WriteString(strings.Repeat("- "+l.key+l.value+"\n", max(-n, 0)))
		text.WriteString(strings.Repeat("+ "+l.key+l.value+"\n", max(n, 0)))
	}
	return text.String()
}

// line is a line of a dump: a key, or a value of that key.
type line struct{ key, value string }

// count adds n to the count of each line of a dump.
func count(counts map[line]int, dump string, n int) {
	var l line
	for text := range strings.Lines(dump) {
		text = strings.TrimRight(text, "\n")
		if strings.HasPrefix(text, " ") {
			l.value = text
		} else {
			l = line{key: text}
		}
		counts[l] += n
	}
}

// scan returns the keys that begin with prefix, sorted. In a cluster it scans every master.
func scan(ctx context.Context, rdb redis.UniversalClient, prefix string) ([]string, error) {
	pattern := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(prefix) + "*"
	var keys []string
	one := func(ctx context.Context, node redis.Cmdable) error {
		found := node.Scan(ctx, 0, pattern, 1000).Iterator()
		for found.Next(ctx) {
			keys = append(keys, found.Val())
		}
		return found.Err()
	}
	var err error
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		var masters []*redis.Client
		if err = cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
			masters = append(masters, node)
			return nil
		}); err != nil {
			return nil, err
		}
		for _, master := range masters {
			if err = one(ctx, master); err != nil {
				return nil, err
			}
		}
	} else {
		err = one(ctx, rdb)
	}
	slices.Sort(keys)
	return slices.Compact(keys), err // SCAN can return a key twice
}

// dump writes some keys to text, in two round trips: one for types, one for values.
func dump(ctx context.Context, rdb redis.UniversalClient, keys []string, text *strings.Builder) error {
	kinds, ttls := make([]*redis.StatusCmd, len(keys)), make([]*redis.DurationCmd, len(keys))
	if _, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			kinds[i], ttls[i] = p.Type(ctx, key), p.PTTL(ctx, key)
		}
		return nil
	}); err != nil {
		return err
	}

	values := make([]func() []string, len(keys))
	if _, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			values[i] = read(ctx, p, kinds[i].Val(), key)
		}
		return nil
	}); err != nil && err != redis.Nil { // nil: the key expired in between
		return err
	}

	for i, key := range keys {
		kind := kinds[i].Val()
		if kind == "none" {
			continue
		}
		if ttls[i].Val() >= 0 {
			kind += ", expires"
		}
		fmt.Fprintf(text, "%s (%s)\n", key, kind)
		for _, value := range values[i]() {
			fmt.Fprintf(text, "  %s\n", value)
		}
	}
	return nil
}

// read queues the command that reads a key, and returns a function that gives its reply as lines.
func read(ctx context.Context, p redis.Pipeliner, kind, key string) func() []string {
	switch kind {
	case "string":
		cmd := p.Get(ctx, key)
		return func() []string { return []string{quote(cmd.Val())} }
	case "list":
		cmd := p.LRange(ctx, key, 0, -1)
		return func() []string { return quoteAll(cmd.Val()) }
	case "set":
		cmd := p.SMembers(ctx, key)
		return func() []string { return sorted(quoteAll(cmd.Val())) }
	case "hash":
		cmd := p.HGetAll(ctx, key)
		return func() []string {
			var lines []string
			for field, value := range cmd.Val() {
				lines = append(lines, quote(field)+" = "+quote(value))
			}
			return sorted(lines)
		}
	case "zset":
		cmd := p.ZRangeWithScores(ctx, key, 0, -1)
		return func() []string {
			var lines []string
			for _, z := range cmd.Val() {
				lines = append(lines, fmt.Sprintf("%.17g %s", z.Score, quote(fmt.Sprint(z.Member))))
			}
			return lines
		}
	case "stream":
		cmd := p.XRange(ctx, key, "-", "+")
		return func() []string {
			var lines []string
			for _, entry := range cmd.Val() {
				var fields []string
				for name, value := range entry.Values {
					fields = append(fields, quote(name)+" = "+quote(fmt.Sprint(value)))
				}
				lines = append(lines, entry.ID+" "+strings.Join(sorted(fields), ", "))
			}
			return lines
		}
	default:
		return func() []string { return []string{"a type that Dump does not read"} }
	}
}

// quote returns a value as one line. It adds quotes only if the value could be misread without.
func quote(s string) string {
	quoted := fmt.Sprintf("%q", s)
	if s == "" || strings.ContainsAny(s, " =,") || quoted != `"`+s+`"` {
		return quoted
	}
	return s
}

func quoteAll(values []string) []string {
	for i := range values {
		values[i] = quote(values[i])
	}
	return values
}

func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}
