//go:build unix

package command

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/curfew-dev/curfew/internal/processgroup"
)

// Guard is a second process that outlives this one by an instant. This process tells it which groups run.
// When the pipe between them breaks, because this process has ended in whatever way, the guard kills
// the groups that are left. The kernel kills only the commands themselves, and only on Linux.
//
// The lines of the pipe are:
//
//	mark M   commands have M in their environment
//	?0       a command is about to start
//	+N       it has started, and leads group N
//	!0       it could not be started
//	-N       group N has ended
//
// If this process ends between ? and +, the guard finds the group by its mark.
type Guard struct {
	argv   []string
	hidden []string // names of variables that the process does not get
	log    *slog.Logger
	mark   string

	mu    sync.Mutex
	pipe  io.WriteCloser
	pid   int
	live  map[int]bool
	begun int           // commands that are about to start
	ended chan struct{} // closed when the guard process has ended
}

// StartGuard starts the guard process. argv is a command that calls Watch with its standard input. It does not get the variables of
// hidden, since commands can read the environment of any process of their user.
func StartGuard(log *slog.Logger, hidden []string, argv ...string) (*Guard, error) {
	g := &Guard{argv: argv, hidden: hidden, log: log, mark: rand.Text(), live: map[int]bool{}}
	return g, g.start()
}

// Pid returns the id of the guard process.
func (g *Guard) Pid() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pid
}

// start starts the process. Caller holds mu, or is the only one that knows g.
func (g *Guard) start() error {
	cmd := exec.Command(g.argv[0], g.argv[1:]...)
	// A session of its own: what ends this process at a terminal must not end the guard first.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = without(func(name string) bool { return slices.Contains(g.hidden, name) })
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start the process that ends the commands if this one is killed: %w", err)
	}
	g.pid, g.pipe, g.ended = cmd.Process.Pid, pipe, make(chan struct{})
	go g.watch(cmd, g.ended)
	fmt.Fprintf(pipe, "mark %s\n", g.mark)
	for id := range g.live {
		g.tell("?0\n+", id)
	}
	for range g.begun {
		g.tell("?", 0)
	}
	return nil
}

// watch waits for the end of the guard process. If somebody has killed it, another one is started.
func (g *Guard) watch(cmd *exec.Cmd, ended chan struct{}) {
	cmd.Wait()
	close(ended)
	time.Sleep(restartPause)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe == nil {
		return // Close was called
	}
	g.pipe.Close()
	if err := g.start(); err != nil {
		g.pipe = nil
		g.log.Error("What commands have started will continue if this process is killed: the process that ends it has ended, and cannot be started again", "error", err)
	}
}

// restartPause is the time before the guard process is started again, so that one that ends at once
// does not take a processor.
const restartPause = 100 * time.Millisecond

// variable returns the variable that each command must have in its environment.
func (g *Guard) variable() string { return markName + "=" + g.mark }

const markName = "CURFEW_GUARD"

// begin tells the guard that a command is about to start. add or fail must follow.
func (g *Guard) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun++
	g.tell("?", 0)
}

// fail tells the guard that a command could not be started.
func (g *Guard) fail() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun--
	g.tell("!", 0)
}

// add tells the guard that a group runs.
func (g *Guard) add(id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live[id] = true
	g.begun--
	g.tell("+", id)
}

// remove tells the guard that a group has ended.
func (g *Guard) remove(id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.live, id)
	g.tell("-", id)
}

// tell sends a line to the guard. If the guard has ended, the next one is told everything. Caller holds mu.
func (g *Guard) tell(what string, id int) {
	if g.pipe != nil {
		fmt.Fprintf(g.pipe, "%s%d\n", what, id)
	}
}

// Close ends the guard process. Groups that still run are killed.
func (g *Guard) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe != nil {
		g.pipe.Close()
		<-g.ended
		g.pipe = nil
	}
}

// Watch is the guard process. It reads which groups run until its input ends, and then kills those
// that are left.
func Watch(in io.Reader) {
	live, begun, mark := map[int]bool{}, 0, ""
	for lines := bufio.NewScanner(in); lines.Scan(); {
		line := lines.Text()
		if text, ok := strings.CutPrefix(line, "mark "); ok {
			mark = text
			continue
		}
		id, err := strconv.Atoi(line[min(1, len(line)):])
		if err != nil {
			continue
		}
		switch line[0] {
		case '?':
			begun++
		case '!':
			begun--
		case '+':
			begun--
			live[id] = true
		case '-':
			delete(live, id)
		}
	}
	for id := range live {
		processgroup.Kill(id)
	}
	// No notification says that a command which was just being started has its mark. It has it soon.
	for look := 0; begun > 0 && look < 3; look++ {
		for _, id := range processgroup.Marked(markName + "=" + mark) {
			processgroup.Kill(id)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
