package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/stages"
)

// builtFolder is where the command was built, "" if no test needs it.
var builtFolder string

// build builds the command as users build it, once for all tests.
var build = sync.OnceValues(func() (program string, err error) {
	if builtFolder, err = os.MkdirTemp("", "curfew-built"); err != nil {
		return "", err
	}
	program = filepath.Join(builtFolder, "curfew")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
})

// built returns the built command.
func built(t *testing.T) string {
	t.Helper()
	program, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func removeBuilt() {
	if builtFolder != "" {
		os.RemoveAll(builtFolder)
	}
}

// itself returns the command of this test binary: it needs no build. Its environment has nothing that a terminal sets.
func itself(args string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], strings.Fields(args)...)
	cmd.Env = append(os.Environ(), commandVariable+"=1", "TERM=xterm", "NO_COLOR=")
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// process is a run of the built command.
type process struct {
	args  []string
	env   []string // beside that of this process, which names no server
	stdin string
	gone  bool // nobody reads its stdout

	signal syscall.Signal // 0: none
	when   <-chan struct{}
	said   string // the signal is also sent when stderr has this text
}

// ending is what a process has left.
type ending struct {
	code      int
	out, errs string
	took      time.Duration
}

// longest is how long a process may take. A call is tried for five seconds.
const longest = 30 * time.Second

// run runs the process to its end.
func (p process) run(t *testing.T) ending {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), longest)
	defer stop()
	cmd := exec.CommandContext(ctx, built(t), p.args...)
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); !strings.HasPrefix(name, "CURFEW_") && name != "REDIS_URL" {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = slices.Concat(cmd.Env, []string{"XDG_CONFIG_HOME=" + builtFolder}, p.env) // not the settings of the user
	cmd.Stdin = strings.NewReader(p.stdin)
	var out bytes.Buffer
	errs := &watched{text: p.said, seen: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &out, errs
	if p.gone {
		r, w, err := os.Pipe()
		if err != nil {
			t.Error(err)
			return ending{}
		}
		r.Close()
		defer w.Close()
		cmd.Stdout = w
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return ending{}
	}
	ended := make(chan struct{})
	if p.signal != 0 {
		go func() {
			select {
			case <-p.when:
			case <-errs.seen:
			case <-ended:
				return
			}
			cmd.Process.Signal(p.signal)
		}()
	}
	err := cmd.Wait()
	close(ended)
	e := ending{cmd.ProcessState.ExitCode(), out.String(), errs.String(), time.Since(began)}
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Errorf("curfew %q: %v after %v: %s", p.args, err, e.took, e.errs)
	}
	return e
}

// watched is an output that tells when it has a text.
type watched struct {
	stages.Logs
	text string
	once sync.Once
	seen chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Logs.Write(p)
	if w.text != "" && strings.Contains(w.String(), w.text) {
		w.once.Do(func() { close(w.seen) })
	}
	return n, err
}
