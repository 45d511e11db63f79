package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/harness"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/size"
	"github.com/curfew-dev/curfew/internal/test/terminal"
	"github.com/curfew-dev/curfew/queue"
)

// firstCommands returns the commands of the first block of the README.
func firstCommands(t *testing.T) (lines []string) {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(readme), "```console\n")
	block, _, _ = strings.Cut(block, "```\n")
	for _, m := range regexp.MustCompile(`(?m)^\$ (.*?)(?: +#.*)?$`).FindAllStringSubmatch(block, -1) {
		lines = append(lines, m[1])
	}
	return lines
}

// A stranger types the first commands of the README: he sees a timeout and a wake-up, pastes the line that `curfew dev` prints into
// another shell, and presses Ctrl-C. In a long run he runs them with go run, which links the command each time.
func TestTheFirstMinute(t *testing.T) {
	play := map[string]func(*testing.T, *terminal.Terminal, *terminal.Process){
		"go run ./cmd/curfew dev":        playDev,
		"go run ./cmd/curfew demo crash": playCrash,
	}
	lines := firstCommands(t)
	if len(lines) == 0 || lines[0] != "go run ./cmd/curfew dev" {
		t.Errorf("the README begins with %q", lines)
	}
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			if play[line] == nil {
				t.Fatal("no test plays it")
			}
			typed := line
			if line == "go run ./cmd/curfew dev" {
				typed += " --port 0" // its own port may be taken on this machine
			}
			screen := terminal.New(t, 100, 30)
			cmd := itself(strings.TrimPrefix(typed, "go run ./cmd/curfew "))
			if size.Long() {
				cmd = exec.Command("/bin/sh", "-c", "exec "+typed) // as a shell in which a person types: it is not interrupted itself
				cmd.Dir = "../.."
			}
			play[line](t, screen, screen.Start(t, cmd))
		})
	}
}

func playDev(t *testing.T, screen *terminal.Terminal, p *terminal.Process) {
	line := screen.Await(t, `Try +(redis-cli -p \d+ FCALL .*)\r\n`)[1]
	screen.Await(t, `enqueued +agent`) // a worker takes it, and then the one of this line
	id, err := exec.Command("/bin/sh", "-c", line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v, %s", line, err, id)
	}
	screen.Await(t, `enqueued +hang +`+regexp.QuoteMeta(strings.TrimSpace(string(id)))+` +deadline in 3\.0 s`)
	screen.Await(t, `TIMEOUT +hang +`+regexp.QuoteMeta(strings.TrimSpace(string(id)))+` +after 3\.000 s, noticed \d+ ms late`)
	screen.Await(t, `woke +agent .* lag \d+ ms`)
	before := screen.Shown()
	screen.Type(t, terminal.CtrlC)
	if code := p.Wait(t); code != 0 && !size.Long() { // go run is interrupted too
		t.Errorf("it ends with exit code %d", code)
	}
	after := strings.TrimPrefix(screen.Shown(), before)
	if strings.Contains(after, "curfew:") || strings.Contains(after, "goroutine") || strings.Contains(screen.Shown(), "\x1b") {
		t.Errorf("at its end it prints %q, and in all %q", after, screen.Shown())
	}
}

func playCrash(t *testing.T, screen *terminal.Terminal, p *terminal.Process) {
	p.Wait(t)
	// On a busy machine the scene can break a promise, or its tasks end before they are claimed: TestScenes tells that from a scene
	// that does so each time.
	const busy = `curfew: .*( came .* late, and must come within|the claim of five tasks did not happen within)`
	if !regexp.MustCompile(`(?s)killed the process \d+ .*The scene kept its promises|` + busy).MatchString(screen.Shown()) {
		t.Errorf("it prints %s", screen.Shown())
	}
}

// The task of the demo hangs for three seconds. Within another second its end and the agent that it woke are on the screen. On a
// machine that needs long to start a process it takes longer: as long as ten starts.
func TestDevShowsItsWakeUpWithinFourSeconds(t *testing.T) {
	t.Parallel()
	inTime(t, func(time.Duration) error {
		screen := terminal.New(t, 80, 24)
		began := time.Now()
		p := screen.Start(t, itself("dev --port 0"))
		screen.Await(t, `TIMEOUT +hang .* after 3\.000 s, noticed \d+ ms late`)
		lag, err := strconv.Atoi(screen.Await(t, `woke +agent .* lag (\d+) ms`)[1])
		took := time.Since(began)
		t.Logf("a timeout and a wake-up were on screen %d ms after the start, %d ms without the timeout of 3 s", took.Milliseconds(), took.Milliseconds()-3000)
		screen.Type(t, terminal.CtrlC)
		if code := p.Wait(t); code != 0 || err != nil {
			t.Errorf("Ctrl-C: exit %d, %v", code, err)
		}
		began = time.Now()
		if out, err := itself("version").CombinedOutput(); err != nil {
			t.Errorf("version: %v, %s", err, out)
		}
		start := time.Since(began)
		// real time: a start beside it takes part of the limit, and a late attempt is repeated
		if took > 3*time.Second+max(time.Second, 10*start) || lag > 500 {
			return lateError{fmt.Errorf("the wake-up was on screen %v after the start, with a lag of %d ms; a start takes %v", took, lag, start)}
		}
		return nil
	})
}

// A command that does not end, such as one with a bug, ends with the second Ctrl-C. But `timeout` sends each signal twice.
func TestTheSecondCtrlCEndsACommandAtOnce(t *testing.T) {
	t.Parallel()
	screen := terminal.New(t, 80, 24)
	p := screen.Start(t, itself("", deafVariable+"=1"))
	screen.Await(t, "runs")
	p.Process.Signal(syscall.SIGTERM)
	p.Process.Signal(syscall.SIGTERM)
	screen.Await(t, "interrupted")
	ended := make(chan int, 1)
	go func() { ended <- p.Wait(t) }()
	await.Until(t, "the second Ctrl-C ends it", func() bool {
		screen.Type(t, terminal.CtrlC)
		return len(ended) > 0
	})
	if <-ended; p.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v, want SIGINT", p.ProcessState)
	}
}

// Whatever ends dev ends it at once, without a word, and leaves no process and no server. It does not wait for the task that hangs.
func TestDevEndsAtOnce(t *testing.T) {
	t.Parallel()
	_, url := database(t)
	for _, row := range []struct {
		args   string
		signal syscall.Signal
	}{
		{"--port 0 --demo --timeout 20s", syscall.SIGINT},
		{"--port 0 --no-demo", syscall.SIGTERM},
		{"--demo --timeout 20s --redis " + url, syscall.SIGTERM},
	} {
		t.Run(row.args, func(t *testing.T) {
			t.Parallel()
			var out, errs harness.Logs
			cmd := itself("dev " + row.args)
			cmd.Stdout, cmd.Stderr = &out, &errs
			child := spawn(t, cmd)
			await.Until(t, "it runs", func() bool { return strings.Contains(out.String(), `"kind":"ready"`) })
			if strings.Contains(row.args, "--demo") {
				await.Until(t, "the task hangs", func() bool { return strings.Contains(out.String(), `"hang"`) })
			}
			child.Signal(row.signal)
			child.Signal(row.signal)
			await.Receive(t, child.Done(), "the end of dev")
			if !child.Succeeded() || errs.String() != "" || strings.Contains(out.String(), "task_timed_out") {
				t.Errorf("%v, stderr %q, want exit 0 before the task has timed out:\n%s", cmd.ProcessState, errs.String(), out.String())
			}
		})
	}
}

// Only top and the counter of a long command move the cursor, and not on a dumb terminal. There are no colours on a dumb terminal, or with NO_COLOR.
func TestTerminalsAreNotControlled(t *testing.T) {
	rdb, url := database(t)
	queuetest.Enqueue(t, queuetest.Open(t, rdb, queue.Config{}), queue.Task{Kind: "render", Timeout: time.Hour})
	batch := t.TempDir() + "/batch.jsonl"
	if err := os.WriteFile(batch, []byte(strings.Repeat(`{"kind":"render","timeout":"1h"}`+"\n", 3)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		args, env string
		controls  bool
	}{
		{"ls", "TERM=xterm", false}, {"queue ls", "TERM=xterm", false}, {"doctor", "TERM=dumb", false}, {"doctor", "NO_COLOR=1", false}, {"doctor", "TERM=xterm", true},
		{"deadlines", "TERM=xterm", false}, {"events", "TERM=xterm", false}, {"explain 0-X", "TERM=xterm", false}, {"top", "TERM=dumb", false}, {"top --once", "TERM=xterm", false},
		{"enqueue --batch " + batch, "TERM=dumb", false}, {"enqueue --batch " + batch, "TERM=xterm", true}, {"fsck", "TERM=dumb", false}, {"help", "NO_COLOR=1", false},
	} {
		t.Run(row.args[:min(len(row.args), 15)], func(t *testing.T) {
			t.Setenv("TERM", "xterm")
			t.Setenv("NO_COLOR", "")
			name, value, _ := strings.Cut(row.env, "=")
			t.Setenv(name, value)
			x := terminal.New(t, 40, 10)
			args := row.args
			if args != "help" {
				args += " --redis " + url
			}
			runWith(t.Context(), append([]string{"curfew"}, strings.Fields(args)...), x.Program, x.Program, x.Program)
			x.Program.WriteString("the end")
			if shown := x.Await(t, "(?s)^(.*)the end")[1]; shown == "" || strings.Contains(shown, "\x1b") != row.controls || strings.Contains(shown, "panic") {
				t.Errorf("curfew %s with %s shows %.300q", row.args, row.env, shown)
			}
		})
	}
}

// On a narrow terminal the lines of dev are as they are, so that what is copied from them is whole.
func TestDevOnANarrowTerminal(t *testing.T) {
	t.Parallel()
	screen := terminal.New(t, 40, 10)
	p := screen.Start(t, itself("dev --port 0 --timeout 50ms", "TERM=dumb"))
	screen.Await(t, `redis-cli -p \d+ FCALL curfew_enqueue 1 'curfew:\{0\}' hang payload '\{\}' timeout 3s\r\n`)
	screen.Resize(t, 20, 5)
	screen.Await(t, `woke +agent .* lag \d+ ms\r\n`)
	screen.Type(t, terminal.CtrlC)
	if code := p.Wait(t); code != 0 {
		t.Errorf("exit %d", code)
	}
}
