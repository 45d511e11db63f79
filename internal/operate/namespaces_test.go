package operate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func TestAKeyBelongsToOneNamespace(t *testing.T) {
	for _, row := range []struct {
		key, namespace, want string
	}{
		{"a:{0}", "a", "0 root true"},
		{"a:{998}:events", "a", "998 events true"},
		{"a:{0}:spec:0-1.b:c", "a", "0 spec true"},
		{"a:{0}:ready:q", "a", "0 ready true"},
		{"a:{0}:ready", "a", "0 unknown true"},
		{"a:{0}:ready:", "a", "0 unknown true"},
		{"a:{0}:events:x", "a", "0 unknown true"},
		{"a:{0}:mine", "a", "0 unknown true"},
		{"a:{0}:", "a", "0 unknown true"},
		{"a:{0}x", "a", "0  false"},
		{"a:{0}}:spec:x", "a", "0  false"},
		{"a:{00}:spec:x", "a", "0  false"},
		{"a:{999}:spec:x", "a", "0  false"},
		{"a:{-1}:spec:x", "a", "0  false"},
		{"a:{x}:spec:x", "a", "0  false"},
		{"a:{}:spec:x", "a", "0  false"},
		{"a:{0", "a", "0  false"},
		{"a:b:{0}:spec:x", "a", "0  false"},
		{"ab:{0}:spec:x", "a", "0  false"},
		{"a{:{0}:spec:x", "a", "0  false"},
		{"x:a:{0}:spec:x", "a", "0  false"},
		{"a:b:{0}:spec:x", "a:b", "0 spec true"},
	} {
		partition, kind, ok := kindOf(row.key, row.namespace)
		if !ok {
			partition = 0
		}
		if got := fmt.Sprint(partition, " ", kind, " ", ok); got != row.want {
			t.Errorf("%s in %s: %s, want %s", row.key, row.namespace, got, row.want)
		}
	}
}

func TestKindsAreThoseOfTheKeys(t *testing.T) {
	source, err := os.ReadFile("../../lua/store/keys.lua")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)= p \.\. "(\w+)(:?)",\s*-- (\w+)`).FindAllStringSubmatch(string(source), -1) {
		if m[3] != "channel" {
			named[m[1]] = m[2] == ":"
		}
	}
	if len(named) < 20 || fmt.Sprint(named) != fmt.Sprint(kinds) {
		t.Errorf("the kinds are %v, and lua/store/keys.lua names %v", kinds, named)
	}
}

func TestListFindsNamespacesAndNothingElse(t *testing.T) {
	s, rdb := start(t)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop", Partitions: 3, Events: "all", EventMiB: 7, Figures: "off"})
	id := queuetest.Enqueue(t, q, queue.Task{Queue: "mail"}).ID
	for range 4 {
		queuetest.Enqueue(t, q, queue.Task{})
	}
	if _, err := q.Cancel(t.Context(), id, "no"); err != nil {
		t.Fatal(err)
	}
	queuetest.Open(t, rdb, queue.Config{Namespace: "shop:b"})
	pipe := rdb.Pipeline()
	pipe.Set(t.Context(), "string:{0}", "x", 0)
	pipe.HSet(t.Context(), "hash:{0}", "f", "x")
	pipe.HSet(t.Context(), "no namespace:{0}", "version", "2")
	pipe.HSet(t.Context(), "x{:{0}", "version", "2")
	pipe.HSet(t.Context(), "new:{0}", "version", "77", "partitions", "2")
	pipe.HSet(t.Context(), "half:{1}", "version", "2", "partitions", "3", "events", "all")
	pipe.HSet(t.Context(), "huge:{0}", "version", "2", "partitions", "99999999999")
	pipe.HSet(t.Context(), "spoilt:{0}", "version", "2", "partitions", "1")
	pipe.Set(t.Context(), "spoilt:{0}:queues", "x", 0)
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, looked, err := s.List(t.Context(), 0, func(Looked) {})
	if err != nil || !looked.Whole || looked.Masters != 1 || looked.Keys != looked.Of || looked.Of != rdb.DBSize(t.Context()).Val() {
		t.Errorf("looked %+v, %v", looked, err)
	}
	var got []string
	for _, n := range all {
		if n.Created.After(time.Now().Add(time.Minute)) {
			t.Errorf("%s was created %v", n.Name, n.Created)
		}
		n.Missing = n.Missing[:min(len(n.Missing), 3)]
		got = append(got, fmt.Sprintf("%s %s %+v known %v missing %v queues %d live %d of %d wrong %v",
			n.Name, n.Version, n.Settings, n.Known(), n.Missing, n.Queues, n.Live, n.Enqueued, errors.Is(n.Err, refusal.ErrWrongType)))
	}
	want := []string{
		"half 2 {Partitions:3 Events:all EventMiB:64 Figures:on DefaultTimeout:0s} known true missing [0 2] queues 0 live 0 of 0 wrong false",
		"huge 2 {Partitions:99999999999 Events:terminal EventMiB:64 Figures:on DefaultTimeout:0s} known true missing [1 2 3] queues 0 live 0 of 0 wrong false",
		"new 77 {Partitions:2 Events:terminal EventMiB:64 Figures:on DefaultTimeout:0s} known false missing [1] queues 0 live 0 of 0 wrong false",
		"shop 2 {Partitions:3 Events:all EventMiB:7 Figures:off DefaultTimeout:0s} known true missing [] queues 2 live 4 of 5 wrong false",
		"shop:b 2 {Partitions:1 Events:terminal EventMiB:64 Figures:on DefaultTimeout:0s} known true missing [] queues 0 live 0 of 0 wrong false",
		"spoilt 2 {Partitions:1 Events:terminal EventMiB:64 Figures:on DefaultTimeout:0s} known false missing [] queues 0 live 0 of 0 wrong true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestListLooksAtNoMoreKeysThanItIsTold(t *testing.T) {
	s, rdb := start(t)
	args := []any{}
	for i := range 20_000 {
		args = append(args, fmt.Sprint("k", i), i)
	}
	if err := rdb.MSet(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	var told []Looked
	_, looked, err := s.List(t.Context(), 3000, func(l Looked) { told = append(told, l) })
	if err != nil || looked.Whole || looked.Keys != 3000 || looked.Of != 20_000 || len(told) != 3 {
		t.Errorf("looked %+v in %d pages, %v", looked, len(told), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, _, err := s.List(ctx, 0, func(Looked) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// A reader who may not read a namespace is told which one, and sees the others.
func TestANamespaceThatMayNotBeReadIsNamed(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	queuetest.Open(t, admin, queue.Config{Namespace: "mine"})
	queuetest.Open(t, admin, queue.Config{Namespace: "theirs"})
	if err := admin.Do(t.Context(), "ACL", "SETUSER", "reader", "on", ">secret", "~mine:{*", "+@read", "+@connection", "+info").Err(); err != nil {
		t.Fatal(err)
	}
	s, _ := connect(t, "redis://reader:secret@"+server.Addr)
	all, _, err := s.List(t.Context(), 0, func(Looked) {})
	if err != nil || len(all) != 2 || all[0].Err != nil || all[0].Partitions != 1 || !errors.Is(all[1].Err, refusal.ErrNoRight) {
		t.Fatalf("%+v, %v", all, err)
	}
	mentions(t, all[1].Err, "it needs ~theirs:{*")
	_, _, err = s.Remove(t.Context(), "theirs", Removal{Force: true})
	mentions(t, err, "it needs ~theirs:{*")
	_, _, err = s.Remove(t.Context(), "mine", Removal{Force: true})
	mentions(t, err, "it needs +eval")
}

func TestCreateChangesNothingThatIsThere(t *testing.T) {
	s, rdb := start(t)
	n, created, err := s.Create(t.Context(), "shop", Settings{Partitions: 2, Events: "all", EventMiB: 3, Figures: "off"})
	if err != nil || !created || n.Settings != (Settings{Partitions: 2, Events: "all", EventMiB: 3, Figures: "off"}) || len(n.Missing) > 0 {
		t.Fatalf("%+v, created %v, %v", n, created, err)
	}
	rdb.HSet(t.Context(), "newer:{0}", "version", "3", "partitions", "1")
	rdb.HSet(t.Context(), "gone:{0}", "version", Removing, "partitions", "1")
	rdb.Set(t.Context(), "taken:{0}", "x", 0)
	for _, row := range []struct {
		claim  string
		name   string
		wanted Settings
		says   []string // nil: no error
	}{
		{"no settings", "shop", Settings{}, nil},
		{"the same settings", "shop", Settings{Partitions: 2, Events: "all", EventMiB: 3, Figures: "off"}, nil},
		{"one of them", "shop", Settings{EventMiB: 3}, nil},
		{"all others", "shop", Settings{Partitions: 4, Events: "none", EventMiB: 9, Figures: "on"}, []string{"exists with other settings, and nothing was changed", "partitions: it has 2, not 4",
			"events: it has all, not none", "MiB of events: it has 3, not 9", "figures: it has off, not on"}},
		{"one other", "shop", Settings{Partitions: 2, Figures: "on"}, []string{"figures: it has off, not on"}},
		{"a newer version", "newer", Settings{}, []string{"version 3, which this program does not know"}},
		{"being removed", "gone", Settings{}, []string{"is being removed: run `curfew namespace rm gone`"}},
		{"a key of another program", "taken", Settings{}, []string{"holds data that Curfew did not write"}},
		{"a bad name", "a{", Settings{}, []string{`namespace "a{" must be`}},
		{"too many partitions", "x", Settings{Partitions: 1000}, []string{"partitions"}},
		{"a bad level", "x", Settings{Events: "some"}, []string{"must be all, terminal or none"}},
	} {
		before := redistest.Digest(t, rdb, "")
		_, created, err := s.Create(t.Context(), row.name, row.wanted)
		if created && err == nil || (err == nil) != (row.says == nil) || redistest.Digest(t, rdb, "") != before {
			t.Errorf("%s: created %v, %v, want no change", row.claim, created, err)
		}
		if row.says != nil {
			mentions(t, err, row.says...)
		}
	}
}

// A program that created the namespace died between two partitions.
func TestCreateCreatesThePartitionsThatAreMissing(t *testing.T) {
	s, rdb := start(t)
	want, _, err := s.Create(t.Context(), "shop", Settings{Partitions: 3, Events: "none", EventMiB: 5, Figures: "off"})
	if err != nil {
		t.Fatal(err)
	}
	rdb.Del(t.Context(), "shop:{1}", "shop:{2}")
	if _, _, err := s.Create(t.Context(), "shop", Settings{Events: "all"}); err == nil || rdb.Exists(t.Context(), "shop:{1}").Val() != 0 {
		t.Errorf("other settings: %v", err)
	}
	n, created, err := s.Create(t.Context(), "shop", Settings{})
	roots, _ := s.roots(t.Context(), "shop")
	if err != nil || created || len(n.Missing) > 0 || len(roots) != 3 || roots[1].Settings != want.Settings || roots[2].Settings != want.Settings {
		t.Errorf("%+v %+v, created %v, %v", n, roots, created, err)
	}
}

// noPermission refuses calls with an argument, with an error that waiting does not cure.
type noPermission struct{ argument string }

func (noPermission) Error() string { return "NOPERM this user has no permissions to run this command" }
func (noPermission) RedisError()   {}

func (n noPermission) DialHook(next redis.DialHook) redis.DialHook { return next }

func (n noPermission) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !slices.Contains(cmd.Args(), any(n.argument)) {
			return next(ctx, cmd)
		}
		cmd.SetErr(n)
		return n
	}
}

func (n noPermission) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// The settings of Open are stored by one call, and the default timeout by the next one. If that fails, the error says what is done.
func TestCreateSaysWhatItHasDone(t *testing.T) {
	s, rdb := start(t)
	rdb.AddHook(noPermission{"default_timeout_ms"})
	_, _, err := s.Create(t.Context(), "shop", Settings{Events: "all", DefaultTimeout: time.Hour})
	mentions(t, err, "the namespace shop is created, and its default timeout is not set: run `curfew namespace set shop --default-timeout 1h`")
	if n, err := s.Namespace(t.Context(), "shop"); err != nil || n.Events != "all" || n.DefaultTimeout != 0 {
		t.Errorf("%+v, %v", n, err)
	}
}

// Programs create the same namespace with different settings at once. Those of one hold, and only it and its equals are told so.
func TestTwoProgramsCreateAtOnce(t *testing.T) {
	s, rdb := start(t)
	for round := range 8 {
		rdb.FlushAll(t.Context())
		wanted := []Settings{{Partitions: 2, Events: "all", EventMiB: 3, Figures: "on"}, {Partitions: 2, Events: "none", EventMiB: 9, Figures: "off"}, {Partitions: 2, Events: "all", EventMiB: 3, Figures: "on"}, {Partitions: 4, Events: "all", EventMiB: 3, Figures: "on"}}
		errs := make([]error, len(wanted))
		var group sync.WaitGroup
		for i := range wanted {
			group.Go(func() { _, _, errs[i] = s.Create(context.Background(), "shop", wanted[i]) })
		}
		group.Wait()
		n, err := s.Namespace(t.Context(), "shop")
		roots, _ := s.roots(t.Context(), "shop")
		if err != nil || len(n.Missing) > 0 {
			t.Fatalf("round %d: %+v, %v", round, n, err)
		}
		mixed := slices.ContainsFunc(roots, func(r partitionRoot) bool { return r.Settings != n.Settings })
		for i, err := range errs {
			if err == nil && (mixed || n.Settings != wanted[i]) {
				t.Errorf("round %d: %+v was created according to %d, and is %+v", round, wanted[i], i, roots)
			}
		}
	}
}

func TestNoNamespaceIsFoundByABadName(t *testing.T) {
	s, _ := start(t)
	for _, name := range []string{"", "a{", "-a", "a b", strings.Repeat("a", 129)} {
		if _, err := s.Namespace(t.Context(), name); !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
		if _, _, err := s.Remove(t.Context(), name, Removal{}); !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("remove %q: %v", name, err)
		}
		if _, err := s.CountKeys(t.Context(), name, func(Looked) {}); !errors.Is(err, refusal.ErrInvalid) {
			t.Errorf("count %q: %v", name, err)
		}
	}
	if _, err := s.Namespace(t.Context(), "nobody"); !errors.Is(err, refusal.ErrNoNamespace) {
		t.Errorf("nobody: %v", err)
	}
}
