package hostile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// as returns a client of the user u with these ACL rules.
func as(t *testing.T, admin *redis.Client, rules string) *redis.Client {
	t.Helper()
	grant(t, admin, "reset on nopass "+rules)
	rdb := redis.NewClient(&redis.Options{Addr: admin.Options().Addr, Username: "u", Password: "x", Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

func grant(t *testing.T, admin *redis.Client, rules string) {
	t.Helper()
	words := []any{"acl", "setuser", "u"}
	for word := range strings.FieldsSeq(rules) {
		words = append(words, word)
	}
	if err := admin.Do(context.Background(), words...).Err(); err != nil {
		t.Fatalf("ACL SETUSER u %s: %v", rules, err)
	}
}

func openAs(rdb *redis.Client) (*queue.Queue, error) {
	return queue.Open(context.Background(), rdb, queue.Config{Namespace: "h", Logger: slog.New(slog.DiscardHandler)})
}

// Without a right, Open fails and writes nothing. Its error names the right, and a command that
// grants it.
func TestOpenNamesTheRightThatIsMissing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	rights := append(s.rights(t), right{"blpop", "~* &* +@all -blpop"}, right{"time", "~* &* +@all -time"}, right{"subscribe", "~* &* +@all -subscribe"},
		right{"publish", "~* &* +@all -publish"}, right{"key h:{0}:alarm", "~* resetchannels &h:{0}:stop:* &h:{0}:ended +@all"},
		right{"fcall", "~* &* +@all -@scripting"}, right{"key h:{", "~other* &* +@all"}, right{"key h:{*", "~h:{0} &* +@all"},
		right{"xinfo", "~* &* +@all -xinfo|stream"})
	for _, r := range rights {
		if slices.Contains([]string{"key h:{0}:alarm", "key h:{0}:ended", "key h:{0}:stop:"}, r.name) && !strings.Contains(r.rule, "resetchannels") || strings.HasSuffix(r.name, "clock") || strings.Contains(r.name, " to ") {
			continue // these are channels, the clock that only tests use, and keys that may be read or written
		}
		admin := s.rdb
		if r.name == "fcall" || r.name == "publish" { // the server must not have the library yet
			admin.FunctionFlush(t.Context())
		}
		admin.FlushDB(t.Context())
		user := as(t, admin, r.rule)
		_, err := openAs(user)
		name := strings.TrimPrefix(strings.TrimPrefix(r.name, "key "), "h:{0}:")
		if r.name == "channels" {
			name = "h:{0}:ended"
		}
		if !errors.Is(err, refusal.ErrNoRight) || !strings.Contains(strings.ToLower(fmt.Sprint(err)), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("without %s: Open = %v", r.name, err)
			continue
		}
		if keys := redistest.Dump(t, admin, ""); keys != "" {
			t.Errorf("without %s: Open failed and left\n%s", r.name, keys)
		}
		for range 3 { // Open names one missing right at a time
			_, cure, _ := strings.Cut(err.Error(), "ACL SETUSER u ")
			cure, _, _ = strings.Cut(cure, " (")
			cure, _, _ = strings.Cut(cure, ", or ")
			grant(t, admin, cure)
			if _, err = openAs(user); err == nil {
				break
			}
		}
		if err != nil {
			t.Errorf("without %s, after the command of the error: Open = %v", r.name, err)
		}
	}
	t.Logf("%d rights", len(rights))
}

// A user that has only the rights that Open's errors name can make every call.
func TestOpenNeedsNoOtherRight(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.rdb.FlushDB(t.Context())
	for _, way := range []string{"+fcall +function|load", "+eval +evalsha"} {
		user := as(t, s.rdb, way)
		_, err := openAs(user)
		for range 6 {
			_, cure, found := strings.Cut(fmt.Sprint(err), "ACL SETUSER u ")
			if err == nil || !found {
				break
			}
			cure, _, _ = strings.Cut(cure, " (")
			grant(t, s.rdb, cure)
			_, err = openAs(user)
		}
		if err != nil {
			t.Fatalf("with %s: Open = %v", way, err)
		}
		q, err := openAs(user)
		if err != nil {
			t.Fatal(err)
		}
		library := testclock.Library(t, s.rdb)
		for role, steps := range roles {
			for _, step := range steps {
				if strings.HasPrefix(step.call, "+") {
					continue
				}
				if _, err := library.Run(t.Context(), user, step.call, root, step.args...); err != nil && denied.MatchString(err.Error()) && !strings.Contains(err.Error(), "clock") {
					t.Errorf("with %s: a %s: %s = %v", way, role, step.call, err)
				}
			}
		}
		s.rdb.RPush(t.Context(), root+":wake:q", "x")
		if _, err := claim.Of(q).WakeLine(0, []string{"q"}).Await(t.Context(), time.Second); err != nil {
			t.Errorf("with %s: Await = %v", way, err)
		}
		rules := s.rdb.Do(t.Context(), "acl", "list").Val().([]any)
		t.Logf("with %s: %v", way, rules[slices.IndexFunc(rules, func(r any) bool { return strings.HasPrefix(r.(string), "user u ") })])
	}
}
