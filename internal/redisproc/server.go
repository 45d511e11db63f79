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
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server process.
type Server struct {
	Addr string // host:port on loopback

	program string
	dir     string
	args    []string // the command line
	process *process
}

// Start starts a redis-server on a free port of loopback, with dir as its folder, and returns when
// it answers. The server has no persistence unless args turn it on. args are settings as on its
// command line, and override the others: Start(dir, "--appendonly", "yes"). Start fails if there is
// no redis-server on the PATH, or if its version is below 7.
//
// With an append-only file, a killed server has lost nothing that it answered, unless args set
// appendfsync.
func Start(dir string, args ...string) (*Server, error) {
	return start(dir, 1, func(ports []string) ([]string, error) {
		return append(plain(dir, ports[0]), args...), nil
	})
}

// plain returns the settings of a server without persistence.
//
// With "everysec", the default of Redis, a slow sync delays the writes behind it by up to two
// seconds, and a kill loses them. With "no" each write is in the file, if not on the disk, before its
// reply.
func plain(dir, port string) []string {
	return []string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no", "--appendfsync", "no", "--daemonize", "no"}
}

// Pid returns the id of the server's process, also after it has ended.
func (s *Server) Pid() int { return s.process.pid }

// Kill ends the process like a crash (SIGKILL), and returns when it has ended. It kills the children
// of the process too, and waits up to 100 ms for their ends.
func (s *Server) Kill() { s.process.kill() }

// Restart kills the server if it runs, and starts it again with the same port, folder and
// arguments. Its data are those that its persistence kept. If another program has the port,
// Restart tries again for 10 s.
func (s *Server) Restart() error {
	s.Kill()
	// Another program can briefly use the port after Kill.
	for give := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := s.launch()
		if !errors.Is(err, errPortTaken) || time.Now().After(give) {
			return err
		}
	}
}

var errPortTaken = errors.New("another program took the port")

// start starts a server on the first of several free ports. arguments returns the command line for
// these ports.
func start(dir string, ports int, arguments func(ports []string) ([]string, error)) (*Server, error) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("there is no redis-server on the PATH, and this needs a real one: run `make redis` to install it")
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

// freePorts returns n different ports on which no program listens.
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

// launch starts the process and waits until it answers. It returns errPortTaken if another process
// has the port.
func (s *Server) launch() error {
	logfile, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer logfile.Close()
	cmd := exec.Command(s.program, s.args...)
	cmd.Stdout, cmd.Stderr = logfile, logfile
	if s.process, err = spawn(cmd); err != nil {
		return fmt.Errorf("cannot start %s: %w", s.program, err)
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

// await connects until the server answers. If the process that answers is another one, it returns
// errPortTaken.
func (s *Server) await() error {
	var info string
	for give := time.Now().Add(patience); ; {
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
		return fmt.Errorf("%s has version %s, and 7.0 or newer is needed: run `make redis` to install it", s.program, facts["redis_version"])
	}
	return nil
}

// info returns INFO server. It fails while the server starts or loads.
func (s *Server) info() (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return "", err // without a client, which would log the error
	}
	conn.Close()
	var text string
	err = s.ask(func(ctx context.Context, rdb *redis.Client) error {
		text, err = rdb.Info(ctx, "server").Result()
		return err
	})
	return text, err
}

// ask calls do with a client that is closed afterwards.
func (s *Server) ask(do func(ctx context.Context, rdb *redis.Client) error) error {
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr, Protocol: 2, MaxRetries: -1, DialerRetries: 1, ReadTimeout: time.Second})
	defer rdb.Close()
	return do(context.Background(), rdb)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
