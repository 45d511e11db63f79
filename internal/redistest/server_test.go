package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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
			t.Errorf("its setting %s is %q", setting, got)
		}
	}
	s.Restart(t)
	if n, err := rdb.DBSize(t.Context()).Result(); n != 0 || err != nil {
		t.Errorf("after a restart it holds %d keys, %v; want none, since it persists nothing", n, err)
	}
}

func TestAnAOFSurvivesKillAndRestart(t *testing.T) {
	s := Start(t, "--appendonly", "yes", "--appendfsync", "always")
	rdb := s.Client(t)
	if err := rdb.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	addr, pid := s.Addr, s.Pid()
	s.Kill()
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Error("a killed server listens")
	}
	s.Restart(t)
	if got, err := rdb.Get(t.Context(), "k").Result(); got != "v" || err != nil {
		t.Errorf("after the restart: %q, %v, want v", got, err)
	}
	if s.Addr != addr || s.Pid() == pid {
		t.Errorf("restarted on %s as %d, want %s and another process than %d", s.Addr, s.Pid(), addr, pid)
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

func TestAWrongSettingIsToldWithTheServersWords(t *testing.T) {
	_, err := start(t.TempDir(), []string{"--no-such-setting", "1"})
	if err == nil || !strings.Contains(err.Error(), "ended at its start") || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("start: %v\nwant that it ended at its start, and what redis-server said", err)
	}
}

func TestATakenPortIsKnown(t *testing.T) {
	for _, test := range []struct {
		by    string
		taker func(*testing.T) string
	}{
		{"a listener that is no Redis", func(t *testing.T) string {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { listener.Close() })
			return listener.Addr().String()
		}},
		{"another redis-server", func(t *testing.T) string { return Start(t).Addr }},
	} {
		t.Run(test.by, func(t *testing.T) {
			s := &Server{program: "redis-server", dir: t.TempDir(), Addr: test.taker(t)}
			if err := s.launch(); !errors.Is(err, errPortTaken) {
				t.Errorf("launch on a taken port: %v, want %v", err, errPortTaken)
			}
		})
	}
}

func TestWithoutRedisTheAdviceIsToInstallIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := start(t.TempDir(), nil)
	if err == nil || !strings.Contains(err.Error(), "make redis") {
		t.Errorf("start without a redis-server: %v, want the advice to run `make redis`", err)
	}
}

func TestSharedIsOneServer(t *testing.T) {
	first := Shared(t)
	t.Run("of all tests", func(t *testing.T) {
		if again := Shared(t); again != first {
			t.Errorf("Shared gave %s, and then %s", first.Addr, again.Addr)
		}
	})
	if err := first.Client(t).Ping(t.Context()).Err(); err != nil {
		t.Errorf("the shared server after the subtest that used it: %v", err)
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

func TestBothAreEmptyServersOfTheirOwn(t *testing.T) {
	var ran []string
	Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ran = append(ran, t.Name())
		if n, err := rdb.DBSize(t.Context()).Result(); n != 0 || err != nil {
			t.Errorf("it holds %d keys, %v, want none", n, err)
		}
		rdb.Set(t.Context(), "k", "v", 0)
	})
	if want := []string{t.Name() + "/redis", t.Name() + "/embedded"}; strings.Join(ran, " ") != strings.Join(want, " ") {
		t.Errorf("ran %q, want %q", ran, want)
	}
}

// The helper is this test binary again: it starts a server, tells its id, and hangs
// until it is killed.
func TestHelperThatHangs(t *testing.T) {
	if os.Getenv("REDISTEST_HANG") == "" {
		return
	}
	fmt.Println("pid:", Start(t).Pid())
	select {}
}

func TestAKilledTestTakesItsServersAlong(t *testing.T) {
	if dieWithParent() == nil {
		return // only Linux promises it
	}
	helper := exec.Command(os.Args[0], "-test.run=^TestHelperThatHangs$")
	helper.Env = append(os.Environ(), "REDISTEST_HANG=1", "TMPDIR="+t.TempDir())
	out, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { helper.Process.Kill(); helper.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "pid:")))
	if err != nil {
		t.Fatal(err)
	}

	helper.Process.Kill()
	for give := time.Now().Add(10 * time.Second); alive(pid); {
		if time.Now().After(give) {
			t.Fatalf("redis-server %d outlived the test that started it", pid)
		}
		// sleeps: it is nobody's child now, so nothing tells when it ends
		time.Sleep(5 * time.Millisecond)
	}
}

// alive tells whether a process runs: one that nobody has waited for is dead too.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
