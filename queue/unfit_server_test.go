package queue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func TestOpenRefusesABadConfig(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		for _, row := range []struct {
			claim, field, advice string
			config               queue.Config
		}{
			{"a namespace of two words", "namespace", "must be 1 to 128 of A-Z a-z 0-9 . _ - : and begin with a letter or digit", queue.Config{Namespace: "two words"}},
			{"a namespace with a hash tag", "namespace", "must be 1 to 128 of", queue.Config{Namespace: "a{b}"}},
			{"a namespace of a line break", "namespace", "must be 1 to 128 of", queue.Config{Namespace: "\r\n"}},
			{"a namespace of 129 bytes", "namespace", "must be 1 to 128 of", queue.Config{Namespace: strings.Repeat("n", 129)}},
			{"-1 partitions", "partitions", "must be 1 to 999, or 0 for what the namespace has", queue.Config{Partitions: -1}},
			{"1,000 partitions", "partitions", "must be 1 to 999, or 0", queue.Config{Partitions: 1000}},
			{"-1 bytes", "max bytes", "must not be negative", queue.Config{MaxBytes: -1}},
			{"an unknown level of events", "events", `"loud" must be all, terminal or none`, queue.Config{Events: "loud"}},
			{"a level of events in capitals", "events", "must be all, terminal or none", queue.Config{Events: "ALL"}},
			{"-1 MiB of events", "event MiB", "must be 1 to 65536; 0 sets nothing", queue.Config{EventMiB: -1}},
			{"65,537 MiB of events", "event MiB", "must be 1 to 65536", queue.Config{EventMiB: 65537}},
			{"an unknown word for figures", "figures", `"yes" must be on or off`, queue.Config{Figures: "yes"}},
			{"an unknown access", "access", `"write" must be produce, work, reap, read or all`, queue.Config{Access: "write"}},
		} {
			t.Run(row.claim, func(t *testing.T) {
				_, err := queue.Open(context.Background(), rdb, row.config)
				badInput{want: refusal.ErrInvalid, field: row.field, advice: row.advice}.check(t, err)
				if keys := redistest.Dump(t, rdb, ""); keys != "" {
					t.Errorf("it wrote something:\n%s", keys)
				}
			})
		}
		queuetest.Open(t, rdb, queue.Config{})
	})
}

// A program that only reads, or wants a namespace that exists, does not create one, and can open one that exists.
func TestOpenOfAnExistingNamespaceCreatesNone(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		configs := []queue.Config{{Namespace: "shop", Access: queue.AccessRead}, {Namespace: "shop", Existing: true}, {Namespace: "shop", Partitions: 3, Existing: true, Access: queue.AccessWork}}
		for i := range configs {
			configs[i].Logger = slog.New(slog.DiscardHandler)
			if _, err := queue.Open(t.Context(), rdb, configs[i]); !errors.Is(err, refusal.ErrNoNamespace) || !strings.Contains(err.Error(), "shop") {
				t.Errorf("Open = %v, want ErrNoNamespace with its name", err)
			}
		}
		if keys := redistest.Dump(t, rdb, ""); keys != "" {
			t.Errorf("Open wrote something:\n%s", keys)
		}
		queuetest.Open(t, rdb, queue.Config{Namespace: "shop", Partitions: 3})
		for _, config := range configs {
			if q, err := queue.Open(t.Context(), rdb, config); err != nil || q.Partitions() != 3 {
				t.Errorf("Open of a namespace that exists = %v, %v", q, err)
			}
		}
	})
}

func TestOpenComparesWithTheNamespace(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx, root := context.Background(), "curfew:{0}"
		for _, row := range []struct {
			claim         string
			before        map[string]any // fields that replace those of a good root
			config        queue.Config
			want          error
			field, advice string
		}{
			{"more partitions", nil, queue.Config{Partitions: 8}, refusal.ErrPartitions, "partitions", "set Config.Partitions to 0 to use its number: it has 4, not 8"},
			{"fewer partitions", nil, queue.Config{Partitions: 1}, refusal.ErrPartitions, "partitions", "it has 4, not 1"},
			{"a newer version", map[string]any{"version": 3}, queue.Config{}, refusal.ErrNewer, "version", "upgrade this program: its records have version 3, and this program works with version 2"},
			{"a newer version, other partitions", map[string]any{"version": 99}, queue.Config{Partitions: 7}, refusal.ErrNewer, "version", "upgrade this program"},
			{"an older version", map[string]any{"version": 1}, queue.Config{}, refusal.ErrOlder, "version", "its records have version 1, and this program works with version 2"},
			{"a root of 0 partitions", map[string]any{"partitions": 0}, queue.Config{}, nil, "partitions", ""},
			{"a root of -3 partitions", map[string]any{"partitions": -3}, queue.Config{}, nil, "partitions", ""},
			{"a root of too many partitions", map[string]any{"partitions": 1000}, queue.Config{}, nil, "partitions", ""},
			{"a root whose number of partitions is a word", map[string]any{"partitions": "x"}, queue.Config{}, nil, "", ""},
			{"a root whose version is a word", map[string]any{"version": "x"}, queue.Config{}, nil, "", ""},
		} {
			t.Run(row.claim, func(t *testing.T) {
				rdb.FlushAll(ctx)
				queuetest.Open(t, rdb, queue.Config{Partitions: 4})
				for field, value := range row.before {
					rdb.HSet(ctx, root, field, value)
				}
				before := redistest.Dump(t, rdb, "")
				_, err := openSafely(rdb, row.config)
				if row.want != nil {
					row := badInput{want: row.want, field: row.field, advice: row.advice}
					row.check(t, err)
				} else if err == nil || strings.Contains(err.Error(), "panic") {
					t.Errorf("error %v, want one that says what is wrong with the root", err)
				}
				if after := redistest.Dump(t, rdb, ""); after != before {
					t.Errorf("it changed something:\n%s", redistest.Diff(before, after))
				}
				rdb.HSet(ctx, root, "version", 2, "partitions", 4)
				if q := queuetest.Open(t, rdb, queue.Config{}); q.Partitions() != 4 {
					t.Errorf("Partitions = %d, want 4", q.Partitions())
				}
			})
		}
	})
}

// openSafely returns a panic as an error, so that the other rows run.
func openSafely(rdb redis.UniversalClient, config queue.Config) (q *queue.Queue, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	config.Logger = slog.New(slog.DiscardHandler)
	return queue.Open(context.Background(), rdb, config)
}

func TestOpenRefusesAReplica(t *testing.T) {
	master := redistest.Start(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Start(t, "--replicaof", host, port)
	_, err := queue.Open(context.Background(), replica.Client(t), queue.Config{})
	badInput{want: refusal.ErrUnfit, field: "replica", advice: "connect to its master " + host + ":" + port}.check(t, err)
	if keys := redistest.Dump(t, master.Client(t), ""); keys != "" {
		t.Errorf("it wrote something:\n%s", keys)
	}
	queuetest.Open(t, master.Client(t), queue.Config{})
}

func TestOpenRefusesAnOldRedis(t *testing.T) {
	for version, good := range map[string]bool{
		"2.8.4": false, "5.0.14": false, "6.2.14": false, "6.9.999": false, "7.0.0": true, "7.2.4": true, "8.0.1": true, "10.0.0": true,
	} {
		rdb := redistest.Embedded(t).Client()
		rdb.AddHook(told{"redis_version:" + version + "\r\n"})
		_, err := queue.Open(context.Background(), rdb, queue.Config{})
		if good && err != nil {
			t.Errorf("version %s: %v, want it accepted", version, err)
		}
		if !good {
			badInput{want: refusal.ErrUnfit, field: version, advice: "7.0 is the oldest that works: upgrade it"}.check(t, err)
			if keys := redistest.Dump(t, rdb, ""); keys != "" {
				t.Errorf("version %s: Open wrote something:\n%s", version, keys)
			}
		}
	}
}

// told replaces the reply to INFO.
type told struct{ info string }

func (told) DialHook(next redis.DialHook) redis.DialHook { return next }
func (told) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h told) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if info, ok := cmd.(*redis.StringCmd); ok && cmd.Name() == "info" {
			info.SetVal(h.info)
			return nil
		}
		return next(ctx, cmd)
	}
}

func TestOpenWarnsOfARedisThatEvicts(t *testing.T) {
	rdb, ctx := redistest.Start(t, "--appendonly", "yes").Client(t), context.Background()
	for _, policy := range []string{"allkeys-lru", "allkeys-random", "volatile-lru", "volatile-ttl", "noeviction"} {
		if err := rdb.ConfigSet(ctx, "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
		rdb.FlushAll(ctx)
		evicts := policy != "noeviction"
		_, err := queue.Open(ctx, rdb, queue.Config{Strict: true, Logger: slog.New(slog.DiscardHandler)})
		if evicts {
			badInput{want: refusal.ErrUnfit, field: "maxmemory-policy is " + policy, advice: "CONFIG SET maxmemory-policy noeviction"}.check(t, err)
			if keys := redistest.Dump(t, rdb, ""); keys != "" {
				t.Errorf("%s: Open wrote something:\n%s", policy, keys)
			}
		} else if err != nil {
			t.Errorf("%s and strict: %v, want it accepted", policy, err)
		}

		var log bytes.Buffer
		q := queuetest.Open(t, rdb, queue.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if warned := strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), policy); warned != evicts {
			t.Errorf("%s: it logged %q, want a warning: %v", policy, log.String(), evicts)
		}
		queuetest.Enqueue(t, q, queue.Task{})
	}
}

func TestOpenWarnsOfARedisThatForgets(t *testing.T) {
	rdb, ctx := redistest.Start(t).Client(t), context.Background()
	for _, appendonly := range []string{"no", "yes"} {
		if err := rdb.ConfigSet(ctx, "appendonly", appendonly).Err(); err != nil {
			t.Fatal(err)
		}
		rdb.FlushAll(ctx)
		_, err := queue.Open(ctx, rdb, queue.Config{Strict: true, Logger: slog.New(slog.DiscardHandler)})
		if appendonly == "no" {
			badInput{want: refusal.ErrUnfit, field: "appendonly is no", advice: "CONFIG SET appendonly yes"}.check(t, err)
			if keys := redistest.Dump(t, rdb, ""); keys != "" {
				t.Errorf("it wrote something:\n%s", keys)
			}
		} else if err != nil {
			t.Errorf("with AOF and strict: %v, want it accepted", err)
		}

		var log bytes.Buffer
		queuetest.Enqueue(t, queuetest.Open(t, rdb, queue.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}), queue.Task{})
		if warned := strings.Contains(log.String(), "level=WARN") && strings.Contains(log.String(), "appendonly is no"); warned != (appendonly == "no") {
			t.Errorf("appendonly %s: Open logged %q, want a warning only without AOF", appendonly, log.String())
		}
	}
}

// A logger gets each warning once, with the first namespace, however many a program opens.
func TestALoggerIsWarnedOnce(t *testing.T) {
	var first, second bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&first, nil)))
	defer slog.SetDefault(before)
	other := slog.New(slog.NewTextHandler(&second, nil))
	rdb := redistest.Start(t, "--maxmemory-policy", "volatile-lfu").Client(t)
	for _, namespace := range []string{"a", "b", "c", "a"} {
		for _, logger := range []*slog.Logger{nil, other} {
			if _, err := queue.Open(t.Context(), rdb, queue.Config{Namespace: namespace, Logger: logger}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, log := range map[string]string{"default": first.String(), "other": second.String()} {
		if strings.Count(log, "volatile-lfu") != 1 || strings.Count(log, `msg="Redis may lose tasks" namespace=a why=`) != strings.Count(log, "may lose") {
			t.Errorf("the %s logger got the warning %d times, want once, of the namespace a:\n%s", name, strings.Count(log, "volatile-lfu"), log)
		}
	}
}

// Open does not warn of settings that the embedded server does not report.
func TestOpenDoesNotWarnOfTheEmbeddedServer(t *testing.T) {
	var log bytes.Buffer
	if _, err := queue.Open(t.Context(), redistest.Embedded(t).Client(), queue.Config{Strict: true, Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil || log.Len() > 0 {
		t.Errorf("Open = %v, and it logged %q, want neither", err, log.String())
	}
}
