package queue_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
)

// now is the time with which some replies begin.
const now = "1800000000000 "

// aWait returns the arguments of a valid wait of 0-g, followed by more: the number of members and
// the arguments after it.
func aWait(more ...any) []any {
	return append([]any{"0-g", "1", "w1", "C", 3, "entry", 1, "mode", "all", "digest", "d"}, more...)
}

// entries returns n entries of a journal, numbered from 1.
func entries(n int) []any {
	var all []any
	for i := range n {
		all = append(all, i+1, "x")
	}
	return all
}

// A worker in another language can send invalid arguments. They are refused before anything is
// written: no child of the wait, no note, and no signal.
func TestTheScriptsOfAgentsRefuseBadInput(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	long := strings.Repeat("q", 129)
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		s := newScript(t, rdb)
		s.accepts(t, "id", "0-a", "kind", "k")
		s.accepts(t, "id", "0-g", "kind", "k", "queue", "agents")
		(&queuetest.Taker{Q: s.q, Worker: "w1"}).Take(t, "0-g", "agents")
		s.accepts(t, "id", "0-g.1", "kind", "k", "role", "promise")
		for _, row := range []struct {
			script string
			args   []any
			want   string // "!" for an error of the script
		}{
			{"suspend", nil, "!"},
			{"suspend", []any{"0-g", "1", "w1", "C"}, "!"},
			{"suspend", []any{"0-g", "1", "w1", "C", "x"}, "!"},
			{"suspend", []any{"0-g", "1", "w1", "C", "-1"}, "!"},
			{"suspend", []any{"0-g", "1", "w1", "C", "1.5"}, "!"},
			{"suspend", []any{"0-g", "1", "w1", "C", "99"}, "!"},
			{"suspend", aWait(0), "!"},
			{"suspend", aWait("two"), "!"},
			{"suspend", aWait(2, "0-g.1", "", ""), "!"},
			{"suspend", aWait(1, "0-g.1", "", ""), "!"},
			{"suspend", aWait(1, "0-g.1", "", "", "0"), "!"},
			{"suspend", aWait(1, "0-g.1", "", "", "x", "0"), "!"},
			{"suspend", aWait(1, "0-g.1", "", "", "-1", "0"), "!"},
			{"suspend", aWait(1, "0-g.1", "", "", "9", "state", "s"), "!"},
			{"suspend", aWait(1, "0-g.1", "", "", "0", "9", "1", "x"), "!"},
			{"suspend", aWait(1, "0-g.1", "", "", "0", "0", "x"), "!"},
			{"suspend", aWait(1, "0-g.1", "", "", "0", "0", "101", "id", "0-g.2"), "!"},
			{"suspend", aWait(1, "", "", "", "0", "0"), now + "FOREIGN "},
			{"suspend", aWait(1, "0-g.1", "", "", "0", "0", "0", "id", "0-g.1"), "!"},
			{"suspend", aWait(1, "0-g.1", "x", "", "0", "0"), now + "INVALID patience must be a whole number from 1"},
			{"suspend", aWait(1, "0-g.1", "1e3", "", "0", "0"), now + "INVALID patience must be a whole number from 1"},
			{"suspend", aWait(1, "0-g.1", "9999999999999999", "", "0", "0"), now + "INVALID patience must be a whole number from 1"},
			{"suspend", aWait(1, "0-g.1", "", "obbbbb", "0", "0"), now + "INVALID mask must be five letters, each of them o, b or n"},
			{"suspend", aWait(1, "0-g.1", "", "", "1", "colour", "red", "0"), now + "INVALID checkpoint may have state, children and entries, each once; the last two are whole numbers"},
			{"suspend", aWait(1, "0-g.1", "", "", "0", "1", "1e3", "x"), now + "INVALID entry must have a whole number from 1 on"},
			{"suspend", []any{"0-g", "1", "w1", "C", 1, "colour", "red", 0, 0, 0}, now + "INVALID colour is not a field of a wait"},
			{"suspend", []any{"0-nobody", "1", "w1", "C", 3, "entry", 1, "mode", "all", "digest", "d", 0, 0, 0}, now + "MISSING"},

			{"remember", nil, "!"},
			{"remember", []any{"0-g", "1", "w1"}, "!"},
			{"remember", []any{"0-g", "1", "w1", "0"}, "!"},
			{"remember", []any{"0-g", "1", "w1", "0", "1"}, "!"},
			{"remember", []any{"0-g", "1", "w1", "0", "1", "1"}, "!"},
			{"remember", []any{"0-g", "1", "w1", "0", "2", "1", "x"}, "!"},
			{"remember", []any{"0-g", "1", "w1", "1", "state", "0"}, "!"},
			{"remember", []any{"0-g", "1", "w1", "0", "1", "-1", "x"}, "INVALID entry must have a whole number from 1 on"},
			{"remember", []any{"0-g", "1", "w1", "0", "1", "1000000000000000", "x"}, "INVALID entry must have a whole number from 1 on"},
			{"remember", []any{"0-g", "1", "w1", "1", "children", "x", "0"}, "INVALID checkpoint may have state, children and entries, each once; the last two are whole numbers"},
			{"remember", []any{"0-g", "1", "w1", "0", "1", "1", strings.Repeat("x", 4194305)}, "INVALID journal would have more than 4 MiB since the last checkpoint: make a Checkpoint, or store large results elsewhere"},
			{"remember", append([]any{"0-g", "1", "w1", "0", "501"}, entries(501)...), "INVALID entries are 501, and a call takes 500"},
			{"remember", []any{"0-nobody", "1", "w1", "0", "0"}, "MISSING"},
			{"remember", []any{"0-g", "2", "w1", "0", "0"}, "LOST RUNNING"},
			{"remember", []any{"0-g", "1", "w2", "0", "0"}, "LOST RUNNING"},
			{"remember", []any{"0-a", "0", "w1", "0", "0"}, "LOST PENDING"},

			{"recall", []any{"0-nobody", "10"}, now + "[]"},
			{"recall", []any{"", "", ""}, now + "[] []"},

			{"signal", nil, "!"},
			{"signal", []any{"C", "0-g"}, "!"},
			{"signal", []any{"C", "0-g", "go"}, "!"},
			{"signal", []any{"C", "0-nobody", "go", "x"}, "OWNER 0-nobody "},
			{"signal", []any{"C", "rubbish", "go", "x"}, "INVALID id " + notAnID},
			{"signal", []any{"C", "", "go", "x"}, "INVALID id " + notAnID},
			{"signal", []any{"C", "0-g", "", "x"}, "INVALID name must be 1 to 128 of A-Z a-z 0-9 _ - and begin with a letter or digit"},
			{"signal", []any{"C", "0-g", long, "x"}, "INVALID name must be 1 to 128 of A-Z a-z 0-9 _ - and begin with a letter or digit"},
			{"signal", []any{"C", "0-g", "a.b", "x"}, "INVALID name must be 1 to 128 of A-Z a-z 0-9 _ - and begin with a letter or digit"},
		} {
			if got := s.call(t, row.script, row.args...); got != row.want {
				t.Errorf("%s %.200q = %.300s, want %s", row.script, row.args, got, row.want)
			}
		}
		queuetest.Sound(t, s.q)
	})
}
