package hostile

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/internal/test/testclock"
)

// attempt is the result of a call.
type attempt struct {
	call   string
	args   []string
	reply  any
	err    error
	ran    int64 // commands that the call made
	memory int64 // growth of the data, in bytes
	lua    int64 // growth of the Lua engine, in bytes
	dirty  bool  // whether the call wrote
}

// mostCommands is more than any call of these tests needs.
const mostCommands = 200

// try makes one call between two INFO commands, in one round trip.
func (s *stage) try(t *testing.T, call string, args []string) attempt {
	t.Helper()
	ctx := context.Background()
	verb, engine := s.way, "used_memory_vm_functions:"
	words := []any{verb, s.handle(call), 1, root}
	if verb == "evalsha" {
		engine, words[1] = "used_memory_vm_eval:", s.scripts[call]
	}
	for _, a := range args {
		words = append(words, a)
	}
	var reply *redis.Cmd
	var before, after *redis.StringCmd
	s.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		before = p.Info(ctx, "memory", "persistence", "stats")
		reply = p.Do(ctx, words...)
		after = p.Info(ctx, "memory", "persistence", "stats")
		return nil
	})
	if after.Err() != nil {
		t.Fatalf("%s %.300q: the server does not answer any more: %v", call, args, after.Err())
	}
	grown := func(name string) int64 { return figure(after.Val(), name) - figure(before.Val(), name) }
	return attempt{call, args, reply.Val(), reply.Err(), grown("total_commands_processed:"), grown("\nused_memory:"), grown(engine),
		grown("rdb_changes_since_last_save:") != 0}
}

// figure returns a number of INFO.
func figure(info, name string) int64 {
	_, rest, _ := strings.Cut(info, name)
	n, _ := strconv.ParseInt(rest[:strings.IndexFunc(rest+" ", func(r rune) bool { return r < '0' || r > '9' })], 10, 64)
	return n
}

// stumbled matches errors of Lua and Redis, which no error text of Curfew matches.
var stumbled = regexp.MustCompile(`attempt to|bad argument|too many results|stack overflow|not enough memory|WRONGTYPE|CROSSSLOT|Wrong number of args|syntax error|` +
	`not an integer|not a float|not a valid|is not valid|invalid|Invalid|unknown|expired|out of range|Unbalanced|must be strings`)

// inWords matches the errors of the functions for programs in other languages.
var inWords = regexp.MustCompile(`^CURFEW [A-Z]+ \S`)

// where matches the place that Redis appends to an error of a script.
var where = regexp.MustCompile(` script: .*, on @user_(function|script):\d+\.$`)

var refusals = []string{"INVALID", "LOST", "MISSING", "FOREIGN", "UNKNOWN", "OWNER", "TAKEN", "CONFLICT", "ALREADY", "DIVERGED", "VERSION", "PARTITIONS", "KNOWN"}

// accepted reports whether the reply is not a refusal. fault says what is wrong with the reply.
func (a attempt) accepted() (accepted bool, fault string) {
	if a.err != nil {
		var answer redis.Error
		text := where.ReplaceAllString(a.err.Error(), "")
		if !errors.As(a.err, &answer) || stumbled.MatchString(text) || !strings.Contains(text, " ") || strings.Contains(text, "\n") || len(text) > 1000 {
			return false, "is not an error text of Curfew"
		} else if strings.HasPrefix(a.call, "curfew_") && !(inWords.MatchString(text) && utf8.ValidString(text)) {
			return false, "is not CURFEW, a word and a sentence in UTF-8"
		} else if a.dirty {
			return false, "is an error, but the call wrote"
		}
		return false, ""
	}
	answer := fmt.Sprint(a.reply)
	if strings.Contains(answer, "BROKEN") {
		return false, "says that a valid record is broken"
	}
	return !slices.ContainsFunc(refusals, func(word string) bool {
		return strings.Contains(answer, "["+word+" ") || strings.Contains(answer, " "+word+" ") || strings.Contains(answer, "["+word+"]") || strings.Contains(answer, " "+word+"]")
	}), ""
}

func (a attempt) String() string {
	said := fmt.Sprint(a.reply)
	if a.err != nil {
		said = a.err.Error()
	}
	return fmt.Sprintf("%s %.60q\n\t= %.300s (%d commands, %d bytes)", a.call, a.args, said, a.ran, a.memory)
}

// A user of another namespace can send any key that he may read, in any call. None is copied many times, and nothing of it is kept.
func TestNoKeyHurts(t *testing.T) {
	s := newStage(t)
	info := func(name string) int64 { return figure(s.rdb.Info(t.Context(), "memory").Val(), name) }
	s.rdb.ConfigResetStat(t.Context())
	before := info("used_memory_vm_functions:")
	for n, b := range slices.Concat(bases(), facadeBases()) {
		for _, key := range []string{strings.Repeat("o", 3<<20) + ":{0}", strings.Repeat(fmt.Sprint(n%10), 3<<20), fmt.Sprintf("other%d:{0}", n), ""} {
			words := []any{"fcall", s.handle(b.call), 1, key}
			for _, a := range b.args {
				words = append(words, a)
			}
			err := s.rdb.Do(t.Context(), words...).Err()
			var answer redis.Error
			if text := fmt.Sprint(err); b.call != "open" && b.call != "curfew_open" && b.call != "curfew_about" && !errors.As(err, &answer) || len(text) > 1000 || stumbled.MatchString(where.ReplaceAllString(text, "")) {
				t.Errorf("%s with the key %.20q: %.300s, want an error text of Curfew", b.name, key, text)
			}
		}
	}
	for range 100 { // the engine collects a part of its garbage with each call
		s.rdb.Do(t.Context(), "fcall", s.handle("read"), 1, root)
	}
	if grown, peak := info("used_memory_vm_functions:")-before, info("used_memory_peak:"); grown > 24<<20 || peak > 200<<20 {
		t.Errorf("the Lua engine has grown by %d bytes, and the memory of Redis to %d, want 24 MiB and 200 MiB at most", grown, peak)
	}
	t.Logf("the Lua engine has grown by %d bytes, and the memory of Redis to %d", info("used_memory_vm_functions:")-before, info("used_memory_peak:"))
}

// Each argument is replaced by hostile values, removed, and repeated. A call with such a value is
// refused with an error text and changes nothing, or the value has a documented meaning. No call
// makes many commands, takes much memory of the server, or runs until the client gives it up. A usual run
// makes one call in twelve.
func TestNoArgumentHurts(t *testing.T) {
	const servers, share = 3, 11 // servers run side by side, because tests mostly wait; one call in share is also made as a script
	for n := range servers {
		t.Run(fmt.Sprint("server ", n), func(t *testing.T) {
			t.Parallel()
			s, calls, scripts := newStage(t), 0, 0
			for i, b := range slices.Concat(bases(), facadeBases()) {
				if i%servers != n {
					continue
				}
				for j, c := range b.cases() {
					if !size.Drawn(b.name+", "+c.what, 12) {
						continue
					}
					s.way = "fcall"
					s.judge(t, b, c, s.try(t, b.call, c.args))
					if (i+j)%share == 0 {
						s.way = "evalsha"
						s.judge(t, b, c, s.try(t, b.call, c.args))
						scripts++
					}
					calls++
				}
			}
			t.Logf("%d calls as functions, %d of them as scripts too", calls, scripts)
		})
	}
}

func (s *stage) judge(t *testing.T, b base, c hostile, a attempt) {
	t.Helper()
	accepted, fault := a.accepted()
	if fault != "" {
		t.Errorf("%s, %s: the reply %s: %s", b.name, c.what, fault, a)
	}
	if accepted && c.refused {
		t.Errorf("%s, %s: accepted: %s", b.name, c.what, a)
	}
	given := int64(0)
	for _, arg := range a.args {
		given += int64(len(arg))
	}
	if a.memory > 3*given+256<<10 || a.lua > 16*given+4<<20 {
		t.Errorf("%s, %s: arguments of %d bytes took %d bytes of data and %d bytes of Lua: %s", b.name, c.what, given, a.memory, a.lua, a)
	}
	changed := a.dirty && redistest.Dump(t, s.rdb, "") != s.text
	if changed && !accepted && !c.partly {
		t.Errorf("%s, %s: refused, but the call changed:\n%.2000s\n%s", b.name, c.what, redistest.Diff(s.text, redistest.Dump(t, s.rdb, "")), a)
	}
	if changed && accepted {
		s.goOn(t)
	}
	if changed {
		if found, err := inspect.Audit(context.Background(), s.q); err != nil || len(found) > 0 {
			t.Errorf("%s, %s: the audit finds %.1000v, %v: %s", b.name, c.what, found, err, a)
		}
		if n := s.rdb.ZCard(context.Background(), root+":broken").Val(); n > 0 {
			t.Errorf("%s, %s: a valid task is marked as broken: %s", b.name, c.what, a)
		}
	}
	if a.dirty {
		s.restore(t)
	}
	if a.ran > mostCommands {
		t.Errorf("%s, %s: the call made %d commands, want at most %d: %s", b.name, c.what, a.ran, mostCommands, a)
	}
}

// goOn sweeps and fetches everything, a day later.
func (s *stage) goOn(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	testclock.Set(t, s.rdb, root, testclock.Start.Add(24*time.Hour))
	for range 2 {
		s.call(t, "sweep", "r", 1000, 500)
		s.call(t, "fetch", "w9", 1<<40, 100, 1000, 0, "q", 100, "hit", 100, "default", 100, "agents", 100, "slow", 1)
		testclock.Set(t, s.rdb, root, testclock.Start.Add(25*time.Hour))
	}
	if err := s.rdb.Del(ctx, root+":clock").Err(); err != nil {
		t.Fatal(err)
	}
}
