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

	"github.com/curfew-dev/curfew/internal/await"
	"github.com/curfew-dev/curfew/internal/redistest"
	"github.com/curfew-dev/curfew/internal/stages"
	"github.com/curfew-dev/curfew/internal/terminal"
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
// another shell, and presses Ctrl-C.
func TestTheFirstMinute(t *testing.T) {
	play := map[string]func(*testing.T, *terminal.Terminal, *terminal.Process){
		"go run ./cmd/curfew dev":        playDev,
		"go run ./cmd/curfew demo crash": playCrash,
	}
	lines := firstCommands(t)
	if len(lines) == 0 || lines[0] != "go run ./cmd/curfew dev" {
		t.Errorf("the README begins with %q", lines)
	}
	link := exec.Command("go", "run", "./cmd/curfew", "version") // the time that this takes says nothing about the commands
	link.Dir = "../.."
	if out, err := link.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
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
			cmd := exec.Command("/bin/sh", "-c", "exec "+typed) // as a shell in which a person types: it is not interrupted itself
			cmd.Dir = "../.."
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
	p.Wait(t) // the exit code is that of go run, which was interrupted too
	after := strings.TrimPrefix(screen.Shown(), before)
	if strings.Contains(after, "curfew:") || strings.Contains(after, "goroutine") || strings.Contains(screen.Shown(), "\x1b") {
		t.Errorf("at its end it prints %q, and in all %q", after, screen.Shown())
	}
}

func playCrash(t *testing.T, screen *terminal.Terminal, p *terminal.Process) {
	screen.Await(t, `killed the process \d+ `)
	p.Wait(t)
	// The scene may have broken a promise on a busy machine: TestScenes tells that from one that breaks it each time.
	if !regexp.MustCompile(`The scene kept its promises|curfew: .* came .* late, and must come within`).MatchString(screen.Shown()) {
		t.Errorf("it prints %s", screen.Shown())
	}
}

// The task of the demo hangs for three seconds. Within another second its end and the agent that it woke are on the screen. On a
// machine that needs long to start a process it takes longer: as long as ten starts.
func TestDevShowsItsWakeUpWithinFourSeconds(t *testing.T) {
	t.Parallel()
	oneInTime(t, func() error {
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
		if took > 3*time.Second+max(time.Second, 10*start) || lag > 500 {
			return fmt.Errorf("the wake-up was on screen %v after the start, with a lag of %d ms; a start takes %v", took, lag, start)
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

// Whatever ends dev ends it at once, without a word, and leaves no process and no server.
func TestDevEndsAtOnce(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for _, args := range []string{"--port 0 --demo", "--port 0 --no-demo", "--demo --redis redis://" + redistest.Start(t).Addr} {
			t.Run(fmt.Sprint(signal, " ", strings.Fields(args)[0], strings.Contains(args, "--no-demo")), func(t *testing.T) {
				t.Parallel()
				var out, errs stages.Logs
				cmd := itself("dev " + args)
				cmd.Stdout, cmd.Stderr = &out, &errs
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { cmd.Process.Kill() })
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				await.Until(t, "it runs", func() bool { return strings.Contains(out.String(), `"kind":"ready"`) })
				if strings.Contains(args, "--demo") {
					await.Until(t, "the task hangs", func() bool { return strings.Contains(out.String(), `"hang"`) })
				}
				cmd.Process.Signal(signal)
				cmd.Process.Signal(signal)
				began := time.Now()
				if err := await.Receive(t, ended, "the end of dev"); err != nil || errs.String() != "" {
					t.Errorf("%v, stderr %q, want exit 0", err, errs.String())
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		}
	}
}

// Only top and the counter of a long command move the cursor, and not on a dumb terminal. There are no colours on a dumb terminal, or with NO_COLOR.
func TestTerminalsAreNotControlled(t *testing.T) {
	t.Parallel()
	_, url := devServer(t, "--no-demo")
	if code, _, errs := curfew(t, "enqueue", "render", "{}", "--timeout", "1h", "--redis", url); code != 0 {
		t.Fatal(errs)
	}
	batch := t.TempDir() + "/batch.jsonl"
	if err := os.WriteFile(batch, []byte(strings.Repeat(`{"kind":"render","timeout":"1h"}`+"\n", 3000)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ args, env string }{
		{"ls", "TERM=xterm"}, {"queue ls", "TERM=xterm"}, {"doctor", "TERM=dumb"}, {"doctor", "NO_COLOR=1"}, {"deadlines", "TERM=xterm"}, {"events", "TERM=xterm"}, {"explain 0-X", "TERM=xterm"},
		{"top", "TERM=dumb"}, {"top --once", "TERM=xterm"}, {"enqueue --batch " + batch, "TERM=dumb"}, {"fsck", "TERM=dumb"}, {"help", "NO_COLOR=1"},
	} {
		t.Run(row.args[:min(len(row.args), 15)], func(t *testing.T) {
			screen := terminal.New(t, 40, 10)
			args := row.args
			if args != "help" {
				args += " --redis " + url
			}
			screen.Start(t, itself(args, row.env)).Wait(t)
			if shown := screen.Shown(); shown == "" || strings.Contains(shown, "\x1b") || strings.Contains(shown, "panic") {
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
