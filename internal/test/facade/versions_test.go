package facade

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/engine"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// digest is that of the text of the façade without its build number. If this test fails, raise
// the build number in lua/named/facade.lua, so that servers get the new text, and note the digest.
const digest = "4 2220cba158062e777d78e540f65920eecfbe91e1"

func TestANewTextHasANewBuildNumber(t *testing.T) {
	facade := load(t)
	text := strings.Replace(facade.Text(), fmt.Sprintf("build = %d}", facade.Build()), "build = n,", 1)
	sum := sha1.Sum([]byte(text))
	if got := fmt.Sprint(facade.Build(), " ", hex.EncodeToString(sum[:])); got != digest {
		t.Errorf("the façade is %q, and was %q: raise build in lua/named/facade.lua, and note this here", got, digest)
	}
}

func load(t *testing.T) *lua.Facade {
	t.Helper()
	facade, err := lua.LoadFacade(nil)
	if err != nil {
		t.Fatal(err)
	}
	return facade
}

// version is the façade as a program of another version has it.
func version(t *testing.T, build int, records lua.Versions) string {
	facade := load(t)
	text := facade.Text()
	for _, line := range [][2]string{
		{fmt.Sprintf("local facade = {build = %d}", facade.Build()), fmt.Sprintf("local facade = {build = %d}", build)},
		{"local versions = {oldest = 2, newest = 2}", fmt.Sprintf("local versions = {oldest = %d, newest = %d}", records.Oldest, records.Newest)},
	} {
		if !strings.Contains(text, line[0]) {
			t.Fatalf("the text has no line %s", line[0])
		}
		text = strings.Replace(text, line[0], line[1], 1)
	}
	return text
}

func buildOn(t *testing.T, rdb *redis.Client) int {
	t.Helper()
	build, err := engine.FacadeBuild(t.Context(), rdb)
	if err != nil {
		t.Fatal(err)
	}
	return build
}

func TestAProgramLoadsTheFunctionsThatAreMissingOrOlder(t *testing.T) {
	t.Parallel()
	mine := load(t).Build()
	for _, c := range []struct {
		name string
		old  string // "": none
		want int
	}{
		{"none", "", mine},
		{"an older one", version(t, 0, lua.Versions{Oldest: 2, Newest: 2}), mine},
		{"the same", version(t, mine, lua.Versions{Oldest: 2, Newest: 2}), mine},
		{"a newer one", version(t, mine+1, lua.Versions{Oldest: 2, Newest: 2}), mine + 1},
		{"an older one that serves records that this one does not", version(t, 0, lua.Versions{Oldest: 1, Newest: 2}), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rdb := redistest.Start(t).Client(t)
			if c.old != "" {
				if err := rdb.FunctionLoad(t.Context(), c.old).Err(); err != nil {
					t.Fatal(err)
				}
			}
			queuetest.Open(t, rdb, queue.Config{})
			if got := buildOn(t, rdb); got != c.want {
				t.Errorf("the server has build %d, want %d", got, c.want)
			}
		})
	}
}

// A library of somebody else that has the name of the façade is left alone.
func TestALibraryOfAnotherProgramIsNotReplaced(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	other := "#!lua name=curfew\nredis.register_function('theirs', function() return 'theirs' end)"
	if err := rdb.FunctionLoad(t.Context(), other).Err(); err != nil {
		t.Fatal(err)
	}
	queuetest.Open(t, rdb, queue.Config{})
	if got, err := rdb.FCall(t.Context(), "theirs", nil).Result(); got != "theirs" || err != nil {
		t.Errorf("their function = %v, %v", got, err)
	}
}

// That library can appear after a program has looked, and before it loads its own.
func TestALibraryThatWasReplacedByMistakeIsPutBack(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	other := "#!lua name=curfew\nredis.register_function('theirs', function() return 'theirs' end)"
	if err := rdb.FunctionLoad(t.Context(), other).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.ReplaceFacade(t.Context(), rdb, load(t).Text()); !errors.Is(err, refusal.ErrUnfit) {
		t.Errorf("error %v, want ErrUnfit", err)
	}
	list, err := rdb.FunctionList(t.Context(), redis.FunctionListQuery{WithCode: true}).Result()
	if err != nil || len(list) != 1 || list[0].Code != other {
		t.Errorf("the server has %d libraries, %v", len(list), err)
	}
}

// A transaction that is refused does not say why. A missing right is no reason for a warning.
func TestALoadThatIsRefusedSaysWhichRightIsMissing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	if err := server.Client(t).Do(t.Context(), "ACL", "SETUSER", "op", "on", "nopass", "~*", "&*", "+@all", "-function|load").Err(); err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "op", Password: "any"})
	defer rdb.Close()
	if _, err := engine.LoadFacade(t.Context(), rdb); !engine.Denied(err) || !strings.Contains(err.Error(), "function|load") {
		t.Errorf("error %v, want that of FUNCTION LOAD", err)
	}
}

// Programs of two versions load at once, many times: the newer one stays.
func TestTheNewerOfTwoThatAreLoadedAtOnceStays(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	mine := load(t).Build()
	for n := range harness.Times(6, 6, 1000) {
		if err := rdb.FunctionFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 {
			if err := rdb.FunctionLoad(t.Context(), version(t, 0, lua.Versions{Oldest: 2, Newest: 2})).Err(); err != nil {
				t.Fatal(err)
			}
		}
		var group sync.WaitGroup
		for i := range 4 {
			text := version(t, mine+i%2, lua.Versions{Oldest: 2, Newest: 2})
			group.Go(func() {
				if _, err := engine.LoadFacadeText(context.Background(), rdb, text); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if got := buildOn(t, rdb); got != mine+1 {
			t.Fatalf("round %d: the server has build %d, want the newer one", n, got)
		}
	}
}

// Somebody removes all functions while clients are at work: programs in Go go on, and load what
// they need; the façade is there again when one of them starts.
func TestFunctionsAreRemovedWhileClientsWork(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	c := clientOf(t, rdb, q)
	id := c.enqueue("k")
	if err := rdb.FunctionFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.try("fetch", "py"); err == nil || err.Error() != "ERR Function not found" {
		t.Errorf("curfew_fetch without functions: error %v", err)
	}
	queuetest.Enqueue(t, q, queue.Task{})
	queuetest.Open(t, rdb, queue.Config{})
	if claims := c.claims("py", "slots", 2); len(claims) != 2 || claims[0]["id"] != id {
		t.Errorf("claims %v, want two", claims)
	}
}

// Each master of a cluster has the functions, and each partition is called by its root.
func TestFunctionsOnACluster(t *testing.T) {
	redistest.SkipClusters(t)
	cluster := redistest.StartCluster(t)
	rdb, err := queue.Connect(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	q := queuetest.Open(t, rdb, queue.Config{Partitions: 6})
	for p := range q.Partitions() {
		c := &client{t, rdb, q.Root(p)}
		id := c.enqueue("k", "timeout", "1m")
		if claims := c.claims("py"); len(claims) != 1 || claims[0]["id"] != id {
			t.Errorf("partition %d: claims %v, want %s", p, claims, id)
		}
	}
}

// A server has one library, also if a program has loaded the calls alone before. Otherwise the
// collector of Redis reads the same functions twice.
func TestAServerHasOneLibrary(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	libraries := func() (names []string) {
		list, err := rdb.FunctionList(t.Context(), redis.FunctionListQuery{}).Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, library := range list {
			names = append(names, library.Name)
		}
		return names
	}
	for range 2 {
		q := queuetest.Open(t, rdb, queue.Config{})
		if got := fmt.Sprint(libraries()); got != "[curfew]" {
			t.Fatalf("after Open the server has the libraries %s, want curfew alone", got)
		}
		queuetest.Enqueue(t, q, queue.Task{})
		clientOf(t, rdb, q).enqueue("k")
		if err := rdb.FunctionFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		queuetest.Enqueue(t, q, queue.Task{}) // it loads the calls alone
		if got := libraries(); len(got) != 1 || got[0] == lua.FacadeName {
			t.Fatalf("after the functions were removed and called again, the server has the libraries %s", got)
		}
	}
}

// An error that a function of the library raises names the file and line of the call.
func TestErrorsNameTheirPlaceInOneLibrary(t *testing.T) {
	t.Parallel()
	rdb := redistest.Start(t).Client(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	for _, name := range []string{"with the façade", "alone"} {
		var raised *lua.ScriptError
		_, err := q.Engine().Library().Run(t.Context(), rdb, "sweep", q.Root(0), "r", "0", "500")
		if !errors.As(err, &raised) || !strings.Contains(err.Error(), "lua/call/sweep.lua:") {
			t.Errorf("%s: %v, want an error with its place in lua/call/sweep.lua", name, err)
		}
		if err := rdb.FunctionFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// Another program upgrades a namespace. These functions, which do not know its version, refuse it and change nothing.
func TestNoFunctionWorksOnANewerVersion(t *testing.T) {
	t.Parallel()
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		c := clientOf(t, rdb, q)
		id := c.enqueue("k", "id", "0-a")
		c.call("fetch", "py")
		calls := map[string][]any{
			"open": {}, "enqueue": {"k"}, "enqueue_many": {`[{"kind":"k"}]`}, "cancel": {id}, "fetch": {"py"}, "get": {id}, "heartbeat": {"py"},
			"resolve": {id, "result", "r"}, "result": {id}, "settle": {"py", id, 1, "result", "r"}, "signal": {id, "go"}, "stats": {}, "sweep": {"r"},
		}
		if got, want := len(calls), len(load(t).Names())-1; got != want { // curfew_about describes any namespace
			t.Errorf("the test has %d functions, and the library has %d", got, want)
		}
		for version, says := range map[string]string{
			"3":        "CURFEW NAMESPACE the records have version 3, and these functions work with versions up to 2: load those of a newer release",
			"1":        "CURFEW NAMESPACE the records have version 1, and these functions work with versions from 2: upgrade them with a release in between",
			"removing": "CURFEW NAMESPACE curfew:{0} is not a namespace: it is being removed",
		} {
			if err := rdb.HSet(t.Context(), q.Root(0), "version", version).Err(); err != nil {
				t.Fatal(err)
			}
			before := redistest.Dump(t, rdb, "")
			for name, args := range calls {
				if _, err := c.try(name, args...); err == nil || err.Error() != says {
					t.Errorf("version %s: curfew_%s: %v, want %s", version, name, err, says)
				}
			}
			if about := c.call("about"); about["version"] != version {
				t.Errorf("curfew_about says version %v, want %s", about["version"], version)
			}
			if after := redistest.Dump(t, rdb, ""); after != before {
				t.Errorf("version %s: something was changed:\n%s", version, redistest.Diff(before, after))
			}
		}
	})
}
