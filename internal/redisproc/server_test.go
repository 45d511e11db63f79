//go:build unix

package redisproc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// run starts a server and kills it when the test ends.
func run(t *testing.T) *Server {
	t.Helper()
	s, err := Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

func TestAPausedServerDoesNotAnswer(t *testing.T) {
	s := run(t)
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true, MaxRetries: -1})
	defer rdb.Close()
	ping := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return rdb.Ping(ctx).Err()
	}
	if err := ping(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	s.Pause()
	if err := ping(100 * time.Millisecond); err == nil {
		t.Error("a paused server answers")
	}
	s.Resume()
	if err := ping(20 * time.Second); err != nil {
		t.Errorf("a resumed server does not answer: %v", err)
	}
}

// A server writes a snapshot in a child process. Here that takes a hundred seconds.
func TestKillEndsTheChildrenToo(t *testing.T) {
	s := run(t)
	if err := s.ask(func(ctx context.Context, rdb *redis.Client) error {
		return errors.Join(
			rdb.MSet(ctx, "a", 1, "b", 2, "c", 3).Err(),
			rdb.ConfigSet(ctx, "rdb-key-save-delay", "33000000").Err(),
			rdb.BgSave(ctx).Err(),
			await("a child process writes a snapshot", func() error { return s.says([]string{"rdb_bgsave_in_progress:1"}, "INFO", "persistence") }),
		)
	}); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := await("the child process has ended", func() error {
		if syscall.Kill(-s.Pid(), 0) == nil {
			return errors.New("the child process of a killed server still runs")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestTheErrorForAWrongSettingHasTheServersLog(t *testing.T) {
	_, err := Start(t.TempDir(), "--no-such-setting", "1")
	if err == nil || !strings.Contains(err.Error(), "ended at its start") || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("Start = %v\nwant that redis-server ended at its start, and its log", err)
	}
}

func TestATakenPortIsRecognised(t *testing.T) {
	for _, test := range []struct {
		by    string
		taker func(*testing.T) string
	}{
		{"a listener that is not a Redis", func(t *testing.T) string {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { listener.Close() })
			return listener.Addr().String()
		}},
		{"another redis-server", func(t *testing.T) string { return run(t).Addr }},
	} {
		t.Run(test.by, func(t *testing.T) {
			addr := test.taker(t)
			_, port, _ := net.SplitHostPort(addr)
			dir := t.TempDir()
			s := &Server{program: "redis-server", dir: dir, Addr: addr, args: plain(dir, port)}
			if err := s.launch(); !errors.Is(err, errPortTaken) {
				t.Errorf("launch on a taken port: %v, want %v", err, errPortTaken)
			}
		})
	}
}

// The port of a killed server is used by another program, which then gives it back.
func TestRestartWaitsForItsPort(t *testing.T) {
	s := run(t)
	s.Kill()
	listener, err := net.Listen("tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, func() { listener.Close() })
	if err := s.Restart(); err != nil {
		t.Errorf("Restart while another program has the port for 300 ms: %v", err)
	}
}

// The fake redis-server on the PATH is TestHelperOldServer, in this test binary.
func TestAnOldServerIsRefusedWithAdvice(t *testing.T) {
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nREDISPROC_OLD=$2 exec %q -test.run='^TestHelperOldServer$'\n", os.Args[0])
	if err := WriteProgram(filepath.Join(dir, "redis-server"), script); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	_, err := Start(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "has version 6.2.14, and 7.0 or newer is needed: run `make redis`") {
		t.Errorf("Start of a redis-server 6.2.14: %v, want its version and the advice to run `make redis`", err)
	}
}

// This test is a helper process: a server that replies to INFO only.
func TestHelperOldServer(t *testing.T) {
	port := os.Getenv("REDISPROC_OLD")
	if port == "" {
		return
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				info := fmt.Sprintf("redis_version:6.2.14\r\nprocess_id:%d\r\n", os.Getpid())
				switch word := strings.ToLower(lines.Text()); word {
				case "info":
					fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(info), info)
				case "hello", "client":
					fmt.Fprint(conn, "-ERR unknown command\r\n")
				}
			}
		}()
	}
}

func TestWithoutRedisTheAdviceIsToInstallIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Start(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "make redis") {
		t.Errorf("Start without a redis-server: %v, want the advice to run `make redis`", err)
	}
}

// This test is a helper process. It starts a server, prints the server's process id, and hangs
// until it is killed.
func TestHelperThatHangs(t *testing.T) {
	if os.Getenv("REDISPROC_HANG") == "" {
		return
	}
	fmt.Println("pid:", run(t).Pid())
	select {}
}

func TestTheServersOfAKilledTestEnd(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // only Linux can do this
	}
	helper := exec.Command(os.Args[0], "-test.run=^TestHelperThatHangs$")
	helper.Env = append(os.Environ(), "REDISPROC_HANG=1", "TMPDIR="+t.TempDir())
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
	// The server is not a child of this process, so nothing notifies it of the end.
	err = await("the server ends with the test that started it", func() error {
		if alive(pid) {
			return fmt.Errorf("%d is alive", pid)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// alive reports whether a process runs. A zombie does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
