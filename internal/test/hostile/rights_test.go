package hostile

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/internal/test/wire"
)

// step is a call of a role, or a time to wait, as +8s.
type step struct {
	call string
	args []any
}

// roles are the calls of each role on the stage, in their order.
var roles = map[string][]step{
	"producer": {
		{"enqueue", wire.Tasks([]any{"id", "0-n1", "kind", "k", "queue", "q", "timeout_ms", "600000", "payload", large, "idempotency_key", "k2"},
			[]any{"id", "0-r1.n", "kind", "k", "queue", "other", "queue_timeout_ms", "5000"}, []any{"id", "0-n2", "kind", "k", "timeout_ms", "600000", "delay_ms", "100"})},
		{"enqueue", wire.Tasks([]any{"id", "0-p1b", "kind", "k", "queue", "hit", "timeout_ms", "600000", "payload", large, "idempotency_key", "k1"})},
		{"read", []any{"0-p1", "0-r1", "0-e1"}}, {"watch", []any{"0-p1", "0-r1"}},
		{"cancel", []any{"c10", "why", "", "0-p2", "0-r3", "0-d1"}}, {"cancel", []any{"c11", "why", "", "0-a1"}},
		{"resolve", []any{"c12", "complete", "0-o1", large}}, {"resolve", []any{"c13", "complete", "0-a2.c", "x"}}, {"resolve", []any{"c14", "fail", "0-a2.n", "x"}},
		{"signal", []any{"c15", "0-a2", "go", large}}, {"drain", []any{"c16", "draining", 100, ""}},
		{"control", []any{"slow", "rate", "", "per_ms", "", "burst", ""}}, {"define", []any{"kd", "timeout_ms", "7000"}}, {"configure", []any{"event_mib", "7"}},
		{"delete", []any{"0-e1", "0-p2"}}, {"+61s", nil}, {"delete", []any{"0-e1", "0-p2", "0-o1", "0-r1"}},
	},
	"worker": {
		{"fetch", []any{"w3", 1, 5, 15000, 0, "hit", 5, "other", 5, "slow", 5, "agents", 5}},
		{"fetch", []any{"w3", 1, 5, 15000, 0, "hit", 5, "other", 5}},
		{"suspend", suspension("0-a1", "c20")}, {"remember", []any{"0-a1", 1, "w1", 1, "state", "s", 1, 9, "x"}}, {"recall", []any{"0-a1", 10, "c"}},
		{"settle", []any{"w1", "c21", 3, "0-r1", 1, "fail", "x", "error", "", "100", "", "0-r2", 1, "complete", large, "0-r3", 1, "release", "", "", "", "", "",
			50, 5, 15000, 0, "hit", 5, "slow", 5}},
		{"settle", []any{"w1", "c22", 1, "0-g1", 1, "fail", "x", "error", "", "", ""}},
		{"heartbeat", []any{"w1", 15000, 0, "0-s1", 1, "half", "0-a1", 1, ""}}, {"heartbeat", []any{"w3", 0, 100}}, {"heartbeat", []any{"w1", 0, 100}},
	},
	"reaper": {
		{"sweep", []any{"r", 100, 500}}, {"+8s", nil}, {"sweep", []any{"r", 100, 500}}, {"+25s", nil}, {"sweep", []any{"r", 100, 500}},
		{"+700s", nil}, {"sweep", []any{"r", 100, 500}}, {"sweep", []any{"r", 2, 500}}, {"sweep", []any{"r", 100, 500}},
	},
}

// A call of a user that lacks a right fails with an error that says so, and is not half done: no
// valid task is put aside, and a reaper that has the right ends everything. A usual run tries one right in six.
func TestAMissingRightLeavesNothingHalfDone(t *testing.T) {
	const share = 7 // one right in share is also tested with scripts
	for role, steps := range roles {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			s, refused, scripts := newStage(t), 0, 0
			rights := s.rights(t)
			for i, r := range rights {
				if !size.Drawn(role+" "+r.name, 6) {
					continue
				}
				refused += s.without(t, role, r, steps)
				if i%share == 0 {
					scripts += s.without(t, role, right{r.name, r.rule + " -fcall"}, steps)
				}
			}
			t.Logf("%d rights, %d calls refused as functions, %d as scripts", len(rights), refused, scripts)
		})
	}
}

// right is a missing right. rule grants all other rights.
type right struct{ name, rule string }

// commands matches words in the Lua that can be commands of Redis.
var commands = regexp.MustCompile(`"([A-Z]{3,16})"`)

// rights returns a right for each command and each kind of key that the calls use, and one for all
// channels.
func (s *stage) rights(t *testing.T) []right {
	t.Helper()
	var all []right
	var seen []string
	for _, m := range commands.FindAllStringSubmatch(s.library.Text(), -1) {
		name := strings.ToLower(m[1])
		known := s.rdb.Command(context.Background()).Val()[name] != nil
		if known && name != "time" && !slices.Contains(seen, name) {
			seen = append(seen, name)
			all = append(all, right{name, "~* &* +@all -" + name})
		}
	}
	keys := []string{root, root + ":none", root + ":clock"}
	for _, m := range regexp.MustCompile(`p \.\. "([a-z_]+:?)"`).FindAllStringSubmatch(s.library.Text(), -1) {
		keys = append(keys, root+":"+m[1])
	}
	pattern := func(key string) string {
		return key + strings.Repeat("*", strings.Count(key, ":")-strings.Count(root, ":"))
	}
	for _, lacking := range keys[3:] {
		rule := "&* +@all"
		for _, key := range keys {
			if key != lacking {
				rule += " ~" + pattern(key)
			}
		}
		all = append(all, right{"key " + lacking, rule}, right{"key " + lacking + " to read", rule + " %W~" + pattern(lacking)},
			right{"key " + lacking + " to write", rule + " %R~" + pattern(lacking)})
	}
	return append(all, right{"channels", "~* resetchannels +@all"})
}

// without makes all calls of a role as a user that lacks a right. It returns how many failed.
func (s *stage) without(t *testing.T, role string, r right, steps []step) int {
	t.Helper()
	ctx := context.Background()
	s.restore(t)
	words := []any{"acl", "setuser", "u", "reset", "on", "nopass"}
	for _, word := range strings.Fields(r.rule) {
		words = append(words, word)
	}
	if err := s.rdb.Do(ctx, words...).Err(); err != nil {
		t.Fatal(err)
	}
	user := redis.NewClient(&redis.Options{Addr: s.rdb.Options().Addr, Username: "u", Password: "x", Protocol: 2, DisableIdentity: true})
	defer user.Close()
	library := testclock.Library(t, s.rdb) // a new library, without what it learned from other users
	refused := 0
	at := testclock.Start
	for _, step := range steps {
		if wait, err := time.ParseDuration(strings.TrimPrefix(step.call, "+")); err == nil {
			at = at.Add(wait)
			testclock.Set(t, s.rdb, root, at)
			continue
		}
		reply, err := library.Run(ctx, user, step.call, root, step.args...)
		if err != nil {
			refused++
			if !denied.MatchString(err.Error()) {
				t.Errorf("a %s without %s: %s %.100q = %v", role, r.name, step.call, step.args, err)
			}
			s.isSound(t, fmt.Sprintf("a %s without %s: %s %.100q = %v:", role, r.name, step.call, step.args, err))
			if says := mayNot.FindStringSubmatch(err.Error()); says != nil && !r.named(says[1], says[2]) {
				t.Errorf("a %s without %s: %s %.100q says that it may not run %s on %s", role, r.name, step.call, step.args, says[1], says[2])
			}
		}
		if strings.Contains(fmt.Sprint(reply), "BROKEN") {
			t.Errorf("a %s without %s: %s %.100q = %.300v", role, r.name, step.call, step.args, reply)
		}
	}
	s.endAll(t, fmt.Sprintf("after a %s without %s:", role, r.name))
	return refused
}

// mayNot matches the errors of lua/store/rights.lua.
var mayNot = regexp.MustCompile(`may not run (\S+) on (\S+): nothing`)

// named reports whether a command and a key are what the right is about. The root as the key means that the command
// is refused on all keys.
func (r right) named(command, key string) bool {
	if name, ok := strings.CutPrefix(r.name, "key "); ok {
		name, _, _ = strings.Cut(name, " to ")
		return key == name || strings.HasSuffix(name, ":") && strings.HasPrefix(key, name)
	}
	return r.name == strings.ToLower(command) && key == root
}

// denied matches the errors of Redis and Curfew for a missing right.
var denied = regexp.MustCompile(`NOPERM|The user executing the script can't|ACL failure`)

func (s *stage) isSound(t *testing.T, what string) {
	t.Helper()
	ctx := context.Background()
	clock := s.rdb.GetDel(ctx, root+":clock").Val() // only tests have it, and the audit does not know it
	if clock != "" {
		defer s.rdb.Set(ctx, root+":clock", clock, 0)
	}
	if found, err := inspect.Audit(ctx, s.q); err != nil || len(found) > 0 {
		t.Errorf("%s the audit finds %.1000v, %v", what, found, err)
		s.restore(t)
	}
	if broken := s.rdb.ZRange(ctx, root+":broken", 0, -1).Val(); len(broken) > 0 {
		t.Errorf("%s valid tasks were put aside: %v", what, broken)
		s.restore(t)
	}
}

// endAll ends everything by a reaper that has all rights.
func (s *stage) endAll(t *testing.T, what string) {
	t.Helper()
	ctx := context.Background()
	testclock.Set(t, s.rdb, root, testclock.Start.Add(2*time.Hour))
	for range 5 {
		s.call(t, "sweep", "r2", 1000, 500)
	}
	s.isSound(t, what)
	stats, err := s.q.Stats(ctx)
	if err != nil || stats.Deadlines+stats.Limits+stats.Delayed+stats.Draining+stats.Broken > 0 {
		t.Errorf("%s not everything ended: %+v, %v", what, stats, err)
	}
	for _, q := range stats.Queues {
		if q.Running != 0 || q.Ready != 0 || q.Waiting != 0 {
			t.Errorf("%s not everything ended: %+v", what, q)
		}
	}
}
