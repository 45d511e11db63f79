package redistest

import (
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

// Server is a redis-server process, without persistence unless its arguments say so.
type Server struct {
	Addr string // host:port on loopback

	program string
	dir     string
	args    []string
	process *process
}

// Start starts a redis-server on a free port, waits until it answers, and stops it
// when the test ends. args are settings as on its command line, and come last, so
// they win: Start(t, "--appendonly", "yes").
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s, err := start(tb.TempDir(), args)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	return s
}

// Client is a new client of this server, closed when the test ends.
func (s *Server) Client(tb testing.TB) *redis.Client {
	tb.Helper()
	return closed(tb, redis.NewClient(&redis.Options{Addr: s.Addr}))
}

func closed(tb testing.TB, rdb *redis.Client) *redis.Client {
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

// Pid is the id of the process that runs, or ran last.
func (s *Server) Pid() int { return s.process.pid }

// Kill ends the process as a crash would (SIGKILL), and returns when it is gone.
func (s *Server) Kill() { s.process.kill() }

// Restart starts the server again with the same port, folder and arguments, after
// a Kill or instead of one. What comes back is what its persistence kept.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.Kill()
	// The port was free a moment ago, and may be some other program's for a moment.
	for give := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := s.launch()
		if err == nil {
			return
		}
		if !errors.Is(err, errPortTaken) || time.Now().After(give) {
			tb.Fatal(err)
		}
	}
}

var errPortTaken = errors.New("another program took the port")

func start(dir string, args []string) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("there is no redis-server on this machine, and this test needs a real one: run `make redis`, which installs it")
	}
	for range 10 {
		s := &Server{program: program, dir: dir, args: args}
		if s.Addr, err = freeAddr(); err != nil {
			return nil, err
		}
		if err = s.launch(); !errors.Is(err, errPortTaken) {
			return s, err
		}
	}
	return nil, err
}

func freeAddr() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// launch starts the process and waits until it, and nobody else, answers.
func (s *Server) launch() error {
	logfile, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer logfile.Close()
	host, port, _ := net.SplitHostPort(s.Addr)
	cmd := exec.Command(s.program, append([]string{
		"--port", port, "--bind", host, "--dir", s.dir, "--save", "", "--appendonly", "no",
		"--daemonize", "no",
	}, s.args...)...)
	cmd.Stdout, cmd.Stderr = logfile, logfile
	if s.process, err = spawn(cmd); err != nil {
		return fmt.Errorf("%s does not start: %w", s.program, err)
	}
	if err := s.await(); err != nil {
		s.Kill()
		text, _ := os.ReadFile(logfile.Name())
		if strings.Contains(string(text), "Address already in use") {
			return errPortTaken
		}
		return fmt.Errorf("%w\n%s", err, lastLines(string(text), 10))
	}
	return nil
}

// await dials until the server answers. On a port that was lost another server may
// answer, so it must be our process that does.
func (s *Server) await() error {
	var info string
	for give := time.Now().Add(30 * time.Second); ; {
		var err error
		if info, err = s.info(); err == nil {
			break
		}
		select {
		case <-s.process.done:
			return fmt.Errorf("redis-server %s ended at its start", strings.Join(s.args, " "))
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(give) {
			return fmt.Errorf("redis-server does not answer on %s: %w", s.Addr, err)
		}
	}
	facts := map[string]string{}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		facts[name] = value
	}
	if facts["process_id"] != strconv.Itoa(s.Pid()) {
		return errPortTaken
	}
	if major, _, _ := strings.Cut(facts["redis_version"], "."); len(major) == 1 && major < "7" {
		return fmt.Errorf("%s is version %s, and 7.0 is the oldest that works: run `make redis`, which says how to get one", s.program, facts["redis_version"])
	}
	return nil
}

// info asks the server what it is. It fails while the server starts or loads.
func (s *Server) info() (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return "", err // before the client would log it
	}
	conn.Close()
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, ReadTimeout: time.Second})
	defer rdb.Close()
	return rdb.Info(context.Background(), "server").Result()
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// process is a child process and the thread that started it.
type process struct {
	pid  int
	os   *os.Process
	done chan struct{} // closed when it has ended
}

// spawn starts a command that dies with this process, however that ends. The kernel
// ties it to the thread that started it, so that thread is kept until the command ended.
func spawn(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = dieWithParent()
	p := &process{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.pid, p.os = cmd.Process.Pid, cmd.Process
		started <- nil
		cmd.Wait()
		close(p.done)
	}()
	return p, <-started
}

func (p *process) kill() {
	p.os.Signal(syscall.SIGKILL)
	<-p.done
}
