package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// slowCalls matches the warning of doctor that calls take long.
var slowCalls = regexp.MustCompile(`(?m)^warn +calls `)

func TestDoctorExitsByTheWorstFinding(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--slowlog-log-slower-than", "-1") // a slow call would stay in the log
	url := "redis://" + server.Addr
	rdb := server.Client(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	if code, _, errs := curfew(t, "functions", "load", "--redis", url); code != 0 {
		t.Fatal(errs)
	}
	turn := func(until time.Time) {
		if err := rdb.HSet(t.Context(), q.Root(0), "turn_until", until.UnixMilli()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	turn(time.Now().Add(time.Hour))
	for _, row := range []struct {
		args       string
		code       int
		out, errs  string
		quietOut   bool
		beforehand func()
	}{
		{"doctor", 0, "ok     server", "", false, nil},
		{"doctor --strict", 0, "ok     reaper", "", false, nil},
		{"doctor --quick", 0, "", "", true, nil},
		{"doctor --role produce -o id", 0, "rights\n", "", false, nil},
		{"doctor", 0, "warn   reaper", "", false, func() { turn(time.Now().Add(-time.Hour)) }},
		{"doctor --strict", 1, "warn   reaper", "curfew: 1 problem: see above\n", false, nil},
		{"doctor --quick --strict", 1, "warn   reaper   no reaper runs in partition 0: run `curfew reap`", "curfew: 1 problem", false, nil},
		{"doctor", 1, "fail   reaper", "curfew: 1 problem: see above\n", false, func() { queuetest.Enqueue(t, q, queue.Task{Timeout: time.Hour}) }},
		{"doctor --namespace shop", 1, "fail   namespace    there is no namespace shop: create it with `curfew namespace create shop`", "curfew: 1 problem", false, nil},
		{"doctor --namespace shop{", 2, "", "namespace", true, nil},
		{"doctor --namespace=", 2, "", "--namespace must not be empty", true, nil},
		{"doctor --role admin", 2, "", `--role "admin" must be all, produce, work, reap or read`, true, nil},
		{"doctor now", 2, "", `doctor takes no argument, and got "now"`, true, nil},
		{"doctor --quik", 2, "", "(did you mean --quick?)", true, nil},
		{"fsck now", 2, "", `fsck takes no argument, and got "now"`, true, nil},
		{"fsck --namespace shop", app.ExitNotFound, "", `there is no namespace "shop"`, true, nil},
	} {
		if row.beforehand != nil {
			row.beforehand()
		}
		inTime(t, func(time.Duration) error { // doctor warns of calls that a busy machine makes slow
			code, out, errs := curfew(t, append(strings.Fields(row.args), "--redis", url)...)
			if code != row.code || !strings.Contains(out, row.out) || !strings.Contains(errs, row.errs) || (row.errs == "") != (errs == "") || row.quietOut && out != "" {
				return lateIf(slowCalls.MatchString(out), fmt.Errorf("curfew %s: exit %d, stdout %q, stderr %q; want exit %d, %q and %q", row.args, code, out, errs, row.code, row.out, row.errs))
			}
			return nil
		})
	}
	_, out, _ := curfew(t, "doctor", "--redis", url, "-o", "json")
	var found []map[string]string
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) < 10 || found[0]["level"] != "ok" || found[0]["subject"] != "server" || found[0]["text"] == "" {
		t.Errorf("%v, %s", err, out)
	}
}

// Doctor names the rights that a user lacks. It never prints the password.
func TestDoctorOfAUserWithoutRights(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	queuetest.Open(t, admin, queue.Config{})
	for _, row := range []struct{ rules, want string }{
		{"+@all ~*", "&curfew:{*"},
		{"+@all &*", "~curfew:{*"},
		{"~* &*", "ACL SETUSER op "},
		{"+@all -zadd ~* &*", "+zadd"},
	} {
		words := []any{"ACL", "SETUSER", "op", "reset", "on", ">geheim"}
		for _, rule := range strings.Fields(row.rules) {
			words = append(words, rule)
		}
		if err := admin.Do(t.Context(), words...).Err(); err != nil {
			t.Fatal(err)
		}
		code, out, errs := curfew(t, "doctor", "--redis", "redis://op:geheim@"+server.Addr)
		if code != app.ExitFailed || !strings.Contains(out, row.want) || strings.Contains(out+errs, "geheim") {
			t.Errorf("%s: exit %d, stdout %q, stderr %q, want %q", row.rules, code, out, errs, row.want)
		}
	}
}

func TestFsckFindsWhatWasPlanted(t *testing.T) {
	q, url := namespace(t, 0)
	id := queuetest.Enqueue(t, q, queue.Task{Timeout: time.Hour}).ID
	code, out, errs := curfew(t, "fsck", "--redis", url)
	if code != 0 || out != "" || !strings.HasSuffix(errs, " is sound\n") {
		t.Errorf("sound: exit %d, stdout %q, stderr %q", code, out, errs)
	}
	rdb := q.Engine().Client()
	for _, row := range []struct {
		key, member string
		score       float64 // 0: the entry is removed
		subject     string
	}{
		{":ready:default", id, 0, id},
		{":deadlines", id, 0, id},
		{":deadlines", id, 5, id},
		{":deadlines", "0-nobody", 5, "0-nobody"},
	} {
		key := q.Root(0) + row.key
		before, _ := rdb.ZScore(t.Context(), key, row.member).Result()
		rdb.ZRem(t.Context(), key, row.member)
		if row.score != 0 {
			rdb.ZAdd(t.Context(), key, redis.Z{Score: row.score, Member: row.member})
		}
		code, out, errs := curfew(t, "fsck", "--redis", url, "-o", "jsonl")
		lines := jsonLines(t, out)
		if code != app.ExitFailed || len(lines) == 0 || lines[0]["subject"] != row.subject || lines[0]["rule"] == "" || !strings.Contains(errs, " in ") {
			t.Errorf("%s %s: exit %d, stdout %q, stderr %q", row.key, row.member, code, out, errs)
		}
		rdb.ZRem(t.Context(), key, row.member)
		if before != 0 {
			rdb.ZAdd(t.Context(), key, redis.Z{Score: before, Member: row.member})
		}
	}
	if code, out, _ := curfew(t, "fsck", "--redis", url); code != 0 {
		t.Errorf("put right again: exit %d, %s", code, out)
	}
}
