package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/lua"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

func facade(t *testing.T) *lua.Facade {
	t.Helper()
	f, err := lua.LoadFacade(nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// version is the library curfew as a program of another version has it.
func version(t *testing.T, build int, records lua.Versions) string {
	t.Helper()
	line := fmt.Sprintf("local facade = {build = %d}", facade(t).Build())
	text := strings.Replace(facade(t).Text(), line, fmt.Sprintf("local facade = {build = %d}", build), 1)
	text = strings.Replace(text, "local versions = {oldest = 2, newest = 2}", fmt.Sprintf("local versions = {oldest = %d, newest = %d}", records.Oldest, records.Newest), 1)
	if build != facade(t).Build() && text == facade(t).Text() {
		t.Fatalf("the text has no line %s", line)
	}
	return text
}

const foreign = "#!lua name=curfew\nredis.register_function('theirs', function() return 'theirs' end)"

// otherCalls is the library with the calls of a Go program of another version.
func otherCalls(t *testing.T) *lua.Library {
	t.Helper()
	l, err := lua.Load(lua.Options{Functions: true, Replace: map[string]string{"store/now": "local function now()\n  return 1800000000000\nend\n"}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func nameIn(text string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(text, "#!lua name="), "\n")
	return name
}

// texts returns the libraries of a server by name.
func texts(t *testing.T, rdb redis.Cmdable) map[string]string {
	t.Helper()
	list, err := rdb.FunctionList(context.Background(), redis.FunctionListQuery{WithCode: true}).Result()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, l := range list {
		all[l.Name] = l.Code
	}
	return all
}

func TestLoadReplacesOnlyWhatItMay(t *testing.T) {
	mine := facade(t).Build()
	s, rdb := start(t)
	for _, row := range []struct {
		claim string
		old   string
		force bool
		want  LoadWord
		stays bool
	}{
		{"there is none", "", false, LoadedNew, false},
		{"an older one", version(t, mine-1, lua.Versions{Oldest: 2, Newest: 2}), false, LoadedReplaced, false},
		{"the same", facade(t).Text(), false, LoadedSame, true},
		{"the same, with force", facade(t).Text(), true, LoadedSame, true},
		{"a newer one", version(t, mine+1, lua.Versions{Oldest: 2, Newest: 2}), false, LeftNewer, true},
		{"a newer one, with force", version(t, mine+1, lua.Versions{Oldest: 2, Newest: 2}), true, LoadedReplaced, false},
		{"an older one that works with records that this one does not", version(t, mine-1, lua.Versions{Oldest: 1, Newest: 2}), false, LeftOther, true},
		{"the same, with force", version(t, mine-1, lua.Versions{Oldest: 1, Newest: 2}), true, LoadedReplaced, false},
		{"the same build with another text", facade(t).Text() + "-- \n", false, LeftOther, true},
		{"of another program", foreign, false, LeftForeign, true},
		{"of another program, with force", foreign, true, LeftForeign, true},
		{"the calls alone, and no façade", loaded(t, lua.Options{Functions: true}).Text(), false, LoadedNew, false},
	} {
		if err := rdb.FunctionFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if row.old != "" {
			if err := rdb.FunctionLoad(t.Context(), row.old).Err(); err != nil {
				t.Fatal(row.claim, err)
			}
		}
		did := s.Load(t.Context(), row.force)
		if len(did) != 1 || did[0].Err != nil || did[0].Word != row.want || did[0].Build != mine {
			t.Errorf("%s: %+v, want %s", row.claim, did, row.want)
		}
		want := map[string]string{lua.FacadeName: facade(t).Text()}
		if row.stays {
			want[lua.FacadeName] = row.old
		}
		if got := texts(t, rdb); len(got) != 1 || got[lua.FacadeName] != want[lua.FacadeName] {
			t.Errorf("%s: the server has %d libraries, and curfew stayed: %v", row.claim, len(got), got[lua.FacadeName] == row.old)
		}
	}
}

func loaded(t *testing.T, o lua.Options) *lua.Library {
	t.Helper()
	l, err := lua.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Two of these commands and programs in Go, which load their calls alone, run at once.
func TestLoadAtOnceWithOthers(t *testing.T) {
	s, rdb := start(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	for round := range 8 {
		if err := rdb.FunctionFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for i := range 2 {
			group.Go(func() {
				if did := s.Load(context.Background(), i == 1); did[0].Err != nil {
					t.Errorf("round %d: %v", round, did[0].Err)
				}
			})
			group.Go(func() {
				if _, err := q.Enqueue(context.Background(), queue.Task{Kind: "k"}); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		group.Wait()
		if got := texts(t, rdb); len(got) != 1 || got[lua.FacadeName] != facade(t).Text() {
			t.Fatalf("round %d: the server has %d libraries", round, len(got))
		}
	}
}

// A program in Go loads its calls between the look at the libraries and the load: a function cannot be in two libraries.
func TestLoadMeetsTheCallsOfAProgram(t *testing.T) {
	s, rdb := start(t)
	other := client(t, "redis://"+s.Masters()[0])
	calls := loaded(t, lua.Options{Functions: true}).Text()
	var once sync.Once
	rdb.AddHook(before{func(ctx context.Context, cmd redis.Cmder) (err error) {
		if cmd.Name() == "multi" {
			once.Do(func() { err = other.FunctionLoad(ctx, calls).Err() })
		}
		return err
	}})
	did := s.Load(t.Context(), false)
	if got := texts(t, other); did[0].Err != nil || len(got) != 1 || got[lua.FacadeName] == "" {
		t.Errorf("%v; the server has %d libraries", did[0].Err, len(got))
	}
}

// Another program loads its library named curfew at that moment.
func TestLoadMeetsTheLibraryOfAnotherProgram(t *testing.T) {
	s, rdb := start(t)
	other := client(t, "redis://"+s.Masters()[0])
	var once sync.Once
	rdb.AddHook(before{func(ctx context.Context, cmd redis.Cmder) (err error) {
		if cmd.Name() == "multi" {
			once.Do(func() { err = other.FunctionLoad(ctx, foreign).Err() })
		}
		return err
	}})
	err := s.Load(t.Context(), true)[0].Err
	if got := texts(t, other)[lua.FacadeName]; !errors.Is(err, refusal.ErrUnfit) || got != foreign {
		t.Errorf("%v; the library is %.100q", err, got)
	}
	mentions(t, err, "the library curfew belongs to another program")
}

func TestLibrariesAreToldApart(t *testing.T) {
	s, rdb := start(t)
	other := otherCalls(t).Text()
	lookalike := "#!lua name=curfew_0123456789ab\nredis.register_function('curfew_0123456789ab_x', function() return 1 end)"
	for _, text := range []string{facade(t).Text(), other, lookalike,
		"#!lua name=curfews\nredis.register_function('one', function() return 1 end)",
		"#!lua name=mine\nredis.register_function('two', function() return 1 end)"} {
		if err := rdb.FunctionLoad(t.Context(), text).Err(); err != nil {
			t.Fatal(err)
		}
	}
	all := s.Libraries(t.Context())
	if len(all) != 1 || all[0].Err != nil || all[0].Node != s.Masters()[0] {
		t.Fatalf("%+v", all)
	}
	got := map[string]string{}
	for _, l := range all[0].Has {
		got[l.Name] = fmt.Sprint(l.Kind, l.Mine, l.Build, l.Records)
		if l.Functions == 0 || l.Text == "" {
			t.Errorf("%s has %d functions and a text of %d bytes", l.Name, l.Functions, len(l.Text))
		}
	}
	want := map[string]string{lua.FacadeName: fmt.Sprint(Facade, true, facade(t).Build(), []string{"2"}), nameIn(other): fmt.Sprint(Calls, false, 0, []string(nil)),
		"curfew_0123456789ab": fmt.Sprint(Foreign, false, 0, []string(nil))}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("libraries %v, want %v", got, want)
	}
}

func TestPruneDeletesOtherVersionsAndTheirProgramsGoOn(t *testing.T) {
	s, rdb := start(t)
	q := queuetest.Open(t, rdb, queue.Config{Library: otherCalls(t)}) // a program of another version
	queuetest.Open(t, rdb, queue.Config{})
	lookalike := "#!lua name=curfew_0123456789ab\nredis.register_function('curfew_0123456789ab_x', function() return 1 end)"
	if err := rdb.FunctionLoad(t.Context(), lookalike).Err(); err != nil {
		t.Fatal(err)
	}
	unused := s.Libraries(t.Context())
	if got := unused[0].Unused(); len(got) != 1 || got[0].Text != otherCalls(t).Text() {
		t.Fatalf("unused: %d libraries", len(got))
	}
	did := s.Prune(t.Context(), unused)
	left := texts(t, rdb)
	if len(did) != 1 || did[0].Err != nil || len(did[0].Has) != 1 || len(left) != 2 || left["curfew_0123456789ab"] != lookalike || left[lua.FacadeName] == "" {
		t.Errorf("pruned %d, %v; left %d", len(did[0].Has), did[0].Err, len(left))
	}
	if did := s.Prune(t.Context(), unused); did[0].Err != nil || len(did[0].Has) != 0 {
		t.Errorf("a library that is gone already: %+v", did)
	}
	queuetest.Enqueue(t, q, queue.Task{})
	if texts(t, rdb)[nameIn(otherCalls(t).Text())] == "" {
		t.Error("the program of another version did not load its library again")
	}
}

// This program's calls are kept also where they are alone.
func TestPruneKeepsTheCallsOfThisProgram(t *testing.T) {
	s, rdb := start(t)
	mine := loaded(t, lua.Options{Functions: true}).Text()
	if err := rdb.FunctionLoad(t.Context(), mine).Err(); err != nil {
		t.Fatal(err)
	}
	s.Prune(t.Context(), s.Libraries(t.Context()))
	if texts(t, rdb)[nameIn(mine)] == "" {
		t.Error("the calls of this program were deleted")
	}
}

func TestWithoutRightsNothingIsLoaded(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client(t)
	const all = "+function|list +function|load +function|delete +multi +exec"
	for _, row := range []struct {
		rules string
		want  []string
	}{
		{"-function|list", []string{"ACL SETUSER op +function|list", "all that this needs: " + all}},
		{"-function|load", []string{"ACL SETUSER op +function|load", "all that this needs: " + all}},
		{"-exec", []string{all}},
	} {
		words := append([]any{"ACL", "SETUSER", "op", "reset", "on", ">secret", "~*", "&*", "+@all"}, row.rules)
		if err := admin.Do(t.Context(), words...).Err(); err != nil {
			t.Fatal(err)
		}
		s, _ := connect(t, "redis://op:secret@"+server.Addr)
		did := s.Load(t.Context(), false)
		if !errors.Is(did[0].Err, refusal.ErrNoRight) {
			t.Errorf("%s: %v, want ErrNoRight", row.rules, did[0].Err)
		}
		mentions(t, did[0].Err, row.want...)
		if got := texts(t, admin); len(got) != 0 {
			t.Errorf("%s: the server has %d libraries", row.rules, len(got))
		}
	}
}

func TestAReplicaIsRefusedWithItsMaster(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.Start(t, "--replicaof", strings.Replace(master.Addr, ":", " ", 1))
	_, err := Connect(t.Context(), client(t, "redis://"+replica.Addr))
	mentions(t, err, "it is a replica: connect to its master "+master.Addr)
}

// FCALL works on the embedded server, but it has no FUNCTION.
func TestTheEmbeddedServerHasItsFunctionsBuiltIn(t *testing.T) {
	s, _ := connect(t, "redis://"+redistest.Embedded(t).Addr())
	mentions(t, s.Load(t.Context(), false)[0].Err, "has the functions built in")
	mentions(t, s.Libraries(t.Context())[0].Err, "has the functions built in")
}

func TestAServerWithoutFunctionsSaysSo(t *testing.T) {
	s, _ := connect(t, "redis://"+redistest.Start(t, "--rename-command", "FUNCTION", "").Addr)
	mentions(t, s.Load(t.Context(), false)[0].Err, "it has no functions")
	mentions(t, s.Libraries(t.Context())[0].Err, "it has no functions")
}

// Each master of a cluster gets the functions. One that is down is named, and the others get them.
func TestFunctionsOnACluster(t *testing.T) {
	redistest.SkipClusters(t)
	cluster := redistest.StartCluster(t)
	s, rdb := connect(t, cluster.URL())
	if len(s.Masters()) != 3 || !slices.IsSorted(s.Masters()) {
		t.Fatalf("masters %v", s.Masters())
	}
	words := func(all []Loaded) (words []LoadWord) {
		for _, did := range all {
			if did.Err != nil {
				t.Error(did.Node, did.Err)
			}
			words = append(words, did.Word)
		}
		return words
	}
	for _, want := range []LoadWord{LoadedNew, LoadedSame} {
		if got := words(s.Load(t.Context(), false)); !slices.Equal(got, []LoadWord{want, want, want}) {
			t.Errorf("Load = %v, want %s on each", got, want)
		}
	}
	for _, node := range s.Libraries(t.Context()) {
		if len(node.Has) != 1 || !node.Has[0].Mine {
			t.Errorf("%s has %d libraries", node.Node, len(node.Has))
		}
	}
	removalOnACluster(t, s, rdb)

	down := cluster.Nodes[1]
	rdb.(*redis.ClusterClient).ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error { return node.FunctionFlush(ctx).Err() })
	down.Kill()
	ok := 0
	for _, did := range s.Load(t.Context(), false) {
		if did.Node == down.Addr {
			if !errors.Is(did.Err, refusal.ErrUnavailable) {
				t.Errorf("the dead master: %v", did.Err)
			}
		} else if did.Err == nil && did.Word == LoadedNew {
			ok++
		}
	}
	if ok != 2 {
		t.Errorf("%d of the other masters have the functions, want 2", ok)
	}
}
