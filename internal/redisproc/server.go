package redisproc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server process.
type Server struct {
	Addr string // host:port on loopback

	program string
	dir     string
	args    []string // its command line
	process *process
}

// Start starts a redis-server on a free port, with dir to write to, and returns when
// it answers. It persists nothing. args are settings as on its command line, and come
// last, so they win: Start(dir, "--appendonly", "yes").
func Start(dir string, args ...string) (*Server, error) {
	return start(dir, 1, func(ports []string) ([]string, error) {
		return append(plain(dir, ports[0]), args...), nil
	})
}

// plain are the settings of a server that keeps nothing.
func plain(dir, port string) []string {
	return []string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no"}
}

// Pid is the id of the process that runs, or ran last.
func (s *Server) Pid() int { return s.process.pid }

// Kill ends the process as a crash would (SIGKILL), and returns when it is gone.
func (s *Server) Kill() { s.process.kill() }

// Pause stops the process where it is (SIGSTOP): its connections stay open, and
// nobody answers on them.
func (s *Server) Pause() { s.process.os.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (s *Server) Resume() { s.process.os.Signal(syscall.SIGCONT) }

// Restart starts the server again with the same port, folder and arguments, after
// a Kill or instead of one. What comes back is what its persistence kept.
func (s *Server) Restart() error {
	s.Kill()
	// The port was free a moment ago, and may be some other program's for a moment.
	for give := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := s.launch()
		if !errors.Is(err, errPortTaken) || time.Now().After(give) {
			return err
		}
	}
}

var errPortTaken = errors.New("another program took the port")

// start starts a server with so many free ports, of which the first is its own;
// arguments says with which command line.
func start(dir string, ports int, arguments func(ports []string) ([]string, error)) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("there is no redis-server on this machine, and a real one is needed: run `make redis`, which installs it")
	}
	for range 10 {
		free, err := freePorts(ports)
		if err != nil {
			return nil, err
		}
		s := &Server{program: program, dir: dir, Addr: "127.0.0.1:" + free[0]}
		if s.args, err = arguments(free); err != nil {
			return nil, err
		}
		if err = s.launch(); !errors.Is(err, errPortTaken) {
			return s, err
		}
	}
	return nil, errPortTaken
}

// freePorts are ports that nobody listens on, all at once, so that they differ.
func freePorts(n int) (free []string, err error) {
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		_, port, _ := net.SplitHostPort(listener.Addr().String())
		free = append(free, port)
	}
	return free, nil
}

// launch starts the process and waits until it, and nobody else, answers.
func (s *Server) launch() error {
	logfile, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer logfile.Close()
	cmd := exec.Command(s.program, s.args...)
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
	var text string
	err = s.ask(func(ctx context.Context, rdb *redis.Client) error {
		text, err = rdb.Info(ctx, "server").Result()
		return err
	})
	return text, err
}

// ask has a client of this server for a moment.
func (s *Server) ask(do func(ctx context.Context, rdb *redis.Client) error) error {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, MaxRetries: -1, DialerRetries: 1, ReadTimeout: time.Second})
	defer rdb.Close()
	return do(context.Background(), rdb)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
