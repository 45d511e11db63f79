package redistest

import (
	"flag"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestAStartedServerAnswersAndKeepsNothing(t *testing.T) {
	s := Start(t)
	rdb := s.Client(t)
	if err := rdb.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for _, setting := range []string{"save", "appendonly"} {
		if got := rdb.ConfigGet(t.Context(), setting).Val()[setting]; got != "" && got != "no" {
			t.Errorf("setting %s is %q, want it off", setting, got)
		}
	}
	s.Restart(t)
	if n, err := rdb.DBSize(t.Context()).Result(); n != 0 || err != nil {
		t.Errorf("after a restart the server has %d keys, %v; want none", n, err)
	}
}

func TestAnAOFSurvivesKillAndRestart(t *testing.T) {
	s := Start(t, "--appendonly", "yes")
	rdb := s.Client(t)
	if err := rdb.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	addr, pid := s.Addr, s.Pid()
	s.Kill()
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Error("a killed server still listens")
	}
	s.Restart(t)
	if got, err := rdb.Get(t.Context(), "k").Result(); got != "v" || err != nil {
		t.Errorf("after the restart: %q, %v, want v", got, err)
	}
	if s.Addr != addr || s.Pid() == pid {
		t.Errorf("restarted on %s as process %d, want %s and not process %d", s.Addr, s.Pid(), addr, pid)
	}
}

func TestEachServerHasItsOwnPort(t *testing.T) {
	a, b := Start(t), Start(t)
	if a.Addr == b.Addr || a.Pid() == b.Pid() {
		t.Errorf("two servers: %s %d and %s %d", a.Addr, a.Pid(), b.Addr, b.Pid())
	}
}

func TestCleanupEndsTheServer(t *testing.T) {
	var s *Server
	t.Run("inner", func(t *testing.T) { s = Start(t) })
	if conn, err := net.Dial("tcp", s.Addr); err == nil {
		conn.Close()
		t.Errorf("%s still listens after its test", s.Addr)
	}
}

func TestSharedIsOneServer(t *testing.T) {
	first := Shared(t)
	t.Run("another test", func(t *testing.T) {
		if again := Shared(t); again != first {
			t.Errorf("Shared returned %s, and then %s", first.Addr, again.Addr)
		}
	})
	if err := first.Client(t).Ping(t.Context()).Err(); err != nil {
		t.Errorf("the shared server does not answer after a subtest that used it: %v", err)
	}
}

func TestAtOnceIsTheDefaultOfParallel(t *testing.T) {
	parallel := flag.Lookup("test.parallel").Value
	old := parallel.String()
	t.Cleanup(func() { parallel.Set(old) })
	AtOnce(7)
	if got := parallel.String(); got != "7" {
		t.Errorf("-parallel is %s after AtOnce(7)", got)
	}
	// As Run does with the command line.
	if err := flag.CommandLine.Parse([]string{"-test.parallel=3"}); err != nil || parallel.String() != "3" {
		t.Errorf("-parallel is %s after a command line with -parallel 3, %v", parallel, err)
	}
}

func TestANamespaceIsNewAndShort(t *testing.T) {
	t.Run("a long name: with/slashes {and} more than enough of it", func(t *testing.T) {
		a, b := Namespace(t), Namespace(t)
		if a == b {
			t.Errorf("two namespaces are %s", a)
		}
		if !strings.HasPrefix(a, "tANamespaceIsNewAndSh.") || strings.ContainsAny(a, " :{}/") {
			t.Errorf("Namespace = %q, want the test's name, cut, and a number", a)
		}
	})
}

func TestANamespaceIsRemovedWhenItsTestEnds(t *testing.T) {
	rdb := Shared(t).Client(t)
	other := Namespace(t)
	rdb.Set(t.Context(), other+":{0}:k", "v", 0)
	var name string
	t.Run("inner", func(t *testing.T) {
		name = Namespace(t)
		for i := range 3000 { // more than one SCAN returns and one UNLINK gets
			rdb.Set(t.Context(), fmt.Sprintf("%s:{%d}:k%d", name, i%4, i), "v", 0)
		}
	})
	if left := Dump(t, rdb, name); left != "" {
		t.Errorf("after its test namespace %s still has\n%s", name, left)
	}
	if Dump(t, rdb, other) == "" {
		t.Errorf("the keys of namespace %s are gone while its test runs", other)
	}
}

func TestBothAreEmptyServersOfTheirOwn(t *testing.T) {
	t.Setenv("CURFEW_LONG", "1") // a usual run may leave out the embedded server
	var ran []string
	Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ran = append(ran, t.Name())
		if n, err := rdb.DBSize(t.Context()).Result(); n != 0 || err != nil {
			t.Errorf("the server has %d keys, %v, want none", n, err)
		}
		rdb.Set(t.Context(), "k", "v", 0)
	})
	if want := []string{t.Name() + "/redis", t.Name() + "/embedded"}; strings.Join(ran, " ") != strings.Join(want, " ") {
		t.Errorf("ran %q, want %q", ran, want)
	}
}
