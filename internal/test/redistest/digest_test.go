package redistest

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const full = `p:{0}:hash (hash)
  a = 1
  b = "x y"
p:{0}:list (list)
  b
  a
  a
p:{0}:set (set)
  a
  b
p:{0}:stream (stream)
  1-1 k = v, n = "\n"
p:{0}:string (string, expires)
  "a\x00\xff"
p:{0}:zset (zset)
  -1 c
  1800000000000.5 a
  1800000000001 b
`

func fill(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.Set(t.Context(), "p:{0}:string", "a\x00\xff", time.Hour)
		p.RPush(t.Context(), "p:{0}:list", "b", "a", "a")
		p.SAdd(t.Context(), "p:{0}:set", "b", "a")
		p.HSet(t.Context(), "p:{0}:hash", "b", "x y", "a", 1)
		p.ZAdd(t.Context(), "p:{0}:zset", redis.Z{Score: 1800000000001, Member: "b"},
			redis.Z{Score: 1800000000000.5, Member: "a"}, redis.Z{Score: -1, Member: "c"})
		p.XAdd(t.Context(), &redis.XAddArgs{Stream: "p:{0}:stream", ID: "1-1", Values: []string{"n", "\n", "k", "v"}})
		p.Set(t.Context(), "q:other", "not ours", 0)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestADumpHasEveryTypeOnBothServers(t *testing.T) {
	Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		fill(t, rdb)
		if got := Dump(t, rdb, "p:{0}"); got != full {
			t.Errorf("Dump =\n%s\nwant\n%s", got, full)
		}
		if got := Dump(t, rdb, "nobody"); got != "" {
			t.Errorf("Dump of no keys = %q", got)
		}
	})
}

func TestTheDigestChangesWithEachChange(t *testing.T) {
	Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx := t.Context()
		for _, test := range []struct {
			change string
			do     func() error
			same   bool
		}{
			{"nothing", func() error { return nil }, true},
			{"another prefix", func() error { return rdb.Set(ctx, "q:other", "x", 0).Err() }, true},
			{"a read", func() error { return rdb.HGetAll(ctx, "p:{0}:hash").Err() }, true},
			{"a string", func() error { return rdb.Set(ctx, "p:{0}:string", "b", time.Hour).Err() }, false},
			{"an expiry", func() error { return rdb.Persist(ctx, "p:{0}:string").Err() }, false},
			{"a field", func() error { return rdb.HSet(ctx, "p:{0}:hash", "a", 2).Err() }, false},
			{"a removed field", func() error { return rdb.HDel(ctx, "p:{0}:hash", "a").Err() }, false},
			{"a list's order", func() error { return rdb.LMove(ctx, "p:{0}:list", "p:{0}:list", "LEFT", "RIGHT").Err() }, false},
			{"a member", func() error { return rdb.SRem(ctx, "p:{0}:set", "a").Err() }, false},
			{"a score", func() error { return rdb.ZIncrBy(ctx, "p:{0}:zset", 0.5, "a").Err() }, false},
			{"an event", func() error {
				return rdb.XAdd(ctx, &redis.XAddArgs{Stream: "p:{0}:stream", ID: "1-2", Values: []string{"k", "v"}}).Err()
			}, false},
			{"a key", func() error { return rdb.Del(ctx, "p:{0}:set").Err() }, false},
			{"a type", func() error {
				rdb.Del(ctx, "p:{0}:list")
				return rdb.SAdd(ctx, "p:{0}:list", "a", "b").Err()
			}, false},
		} {
			if err := rdb.FlushAll(ctx).Err(); err != nil {
				t.Fatal(err)
			}
			fill(t, rdb)
			before, dump := Digest(t, rdb, "p:{0}"), Dump(t, rdb, "p:{0}")
			if err := test.do(); err != nil {
				t.Fatalf("%s: %v", test.change, err)
			}
			after := Dump(t, rdb, "p:{0}")
			if same := Digest(t, rdb, "p:{0}") == before; same != test.same {
				t.Errorf("%s: the digest stayed the same: %v, want %v\n%s", test.change, same, test.same, Diff(dump, after))
			}
		}
	})
}

func TestAPrefixIsNotAPattern(t *testing.T) {
	Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		for _, key := range []string{"a*b:1", "axb:1", "[a]:1", "a:1", `a\b:1`, "a?b:1"} {
			if err := rdb.Set(t.Context(), key, "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		for _, prefix := range []string{"a*b", "[a]", `a\b`, "a?b"} {
			if got, want := Dump(t, rdb, prefix), prefix+":1 (string)\n  v\n"; got != want {
				t.Errorf("Dump(%s) = %q, want %q", prefix, got, want)
			}
		}
	})
}

func TestManyKeysAreAllThere(t *testing.T) {
	rdb := Shared(t).Client(t)
	root := Namespace(t)
	args := []any{}
	for i := range 1234 {
		args = append(args, root+":"+string(rune('a'+i%26))+string(rune('0'+i/26)), i)
	}
	if err := rdb.MSet(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	keys, err := scan(t.Context(), rdb, root)
	if len(keys) != 1234 || err != nil {
		t.Errorf("scan found %d keys, %v, want 1234", len(keys), err)
	}
	counts := map[line]int{}
	count(counts, Dump(t, rdb, root), 1)
	if len(counts) != 2*1234 {
		t.Errorf("the dump has %d lines, want 2 for each of 1234 keys", len(counts))
	}
}

func TestADiffHasTheChangedLinesAndTheirKeys(t *testing.T) {
	before := "a (hash)\n  x = 1\n  y = 2\nl (list)\n  1\n"
	after := "a (hash)\n  x = 1\n  y = 3\nl (list)\n  1\n  1\nn (string)\n  v\n"
	want := "- a (hash)  y = 2\n+ a (hash)  y = 3\n+ l (list)  1\n+ n (string)\n+ n (string)  v\n"
	if got := Diff(before, after); got != want {
		t.Errorf("Diff =\n%s\nwant\n%s", got, want)
	}
	if got := Diff(before, before); got != "" {
		t.Errorf("Diff of equal dumps = %q", got)
	}
}
