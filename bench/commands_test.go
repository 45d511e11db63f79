package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/queue"
)

// BenchmarkCommands measures the command curfew among many tasks:
//
//	go test ./bench -run '^$' -bench Commands -timeout 1h
func BenchmarkCommands(b *testing.B) {
	program := buildCurfew(b)
	figures(b, func(ctx context.Context, rdb redis.UniversalClient) (Report, error) {
		return measureCommands(ctx, rdb, program, 1_000_000, 100_000)
	})
}

// BenchmarkDev measures the first seconds of curfew dev, with a demo task whose timeout is 3 s:
//
//	go test ./bench -run '^$' -bench Dev
func BenchmarkDev(b *testing.B) {
	program := buildCurfew(b)
	figures(b, func(ctx context.Context, _ redis.UniversalClient) (Report, error) {
		return measureDev(ctx, program, 3*time.Second)
	})
}

// It fails if a filter of ls does not find its tasks, or if the demo does not go on.
func TestTheProgramCurfewIsMeasured(t *testing.T) {
	program := buildCurfew(t)
	measureBoth := []func() (Report, error){
		func() (Report, error) { return measureCommands(t.Context(), server(t), program, 500, 200) },
		func() (Report, error) { return measureDev(t.Context(), program, 100*time.Millisecond) },
	}
	for _, measure := range measureBoth {
		r, err := measure()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Figures {
			if f.Value <= 0 {
				t.Errorf("%s: %s is %v", r.Bench, f.Name, f.Value)
			}
		}
	}
}

// buildCurfew builds the command, without symbols as in a release.
func buildCurfew(t testing.TB) string {
	program := filepath.Join(t.TempDir(), "curfew")
	if out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, "../cmd/curfew").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// measureDev runs curfew dev until its agent has woken. The time begins before the process starts, and that of the demo's task is taken off.
func measureDev(ctx context.Context, program string, timeout time.Duration) (r Report, err error) {
	cmd := exec.CommandContext(ctx, program, "dev", "--port", "0", "--demo", "-o", "text", "--timeout", timeout.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		return r, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return r, err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	r.Bench = "dev"
	since := func(name string, off time.Duration) { r.add(name, milliseconds(time.Since(began)-off), "ms") }
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "  Redis "):
			since("start to the address of the server", 0)
		case strings.Contains(line, "  TIMEOUT "):
			since("start to the timeout, without its time", timeout)
		case strings.Contains(line, "  woke "):
			since("start to the wake-up, without that time", timeout)
			return r, nil
		}
	}
	return r, errors.New("curfew dev ended before its agent had woken")
}

// rare is how many tasks each filter finds. They are the oldest, and ls begins with the newest, so it looks at all others first.
const rare = 100

// commands measures processes of the command.
type commands struct {
	*micro
	program        string
	pending, ended int // tasks; the last command removes those that have ended
	agent, task    string
}

// measureCommands measures the command curfew from the start of its process to the end: one task printed, 100 tasks found by
// each filter among many, and many removed. A program that does nothing is measured beside it.
func measureCommands(ctx context.Context, rdb redis.UniversalClient, program string, pending, ended int) (Report, error) {
	c := &commands{micro: &micro{rdb: rdb}, program: program, pending: pending, ended: ended}
	r := Report{Bench: "commands"}
	if err := c.fill(ctx); err != nil {
		return r, err
	}
	if err := c.time(ctx, &r, "true, a program that does nothing", "true"); err != nil {
		return r, err
	}
	for _, of := range []struct{ name, args string }{
		{"version", "version"},
		{"get", "get " + c.task},
		{"queue ls", "queue ls"},
		{"ls", "ls"},
		{"ls --queue", "ls --queue few"},
		{"ls --kind", "ls --kind few"},
		{"ls --status", "ls --status FAILED"},
		{"ls --timed-out", "ls --timed-out"},
		{"ls --agent", "ls --agent " + c.agent},
		{"ls --since", "ls --since 1h"},
		{"ls --error", "ls --error disk"},
		{"rm --all-matching", "rm --all-matching --status CANCELLED --yes"},
	} {
		if err := c.time(ctx, &r, of.name, c.program, c.arguments(of.args)...); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (c *commands) arguments(words string) []string {
	args := strings.Fields(words)
	if args[0] == "version" {
		return args
	}
	if args[0] == "ls" {
		args = append(args, "--limit", fmt.Sprint(rare), "--looks", fmt.Sprint(10*(c.pending+c.ended)+10000), "-o", "id")
	}
	return append(args, "--redis", "redis://"+c.rdb.(*redis.Client).Options().Addr, "--namespace", "bench", "--quiet")
}

// time adds how long a process takes. It returns an error if a list has not exactly rare tasks.
func (c *commands) time(ctx context.Context, r *Report, name, program string, args ...string) error {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, errs.String())
	}
	if n := bytes.Count(out.Bytes(), []byte("\n")); strings.HasPrefix(name, "ls") && n != rare {
		return fmt.Errorf("%s printed %d tasks, want %d", name, n, rare)
	}
	r.add(name, took.Seconds()*1000, "ms")
	return nil
}

// fill makes the tasks that the filters find, those that have ended, and those that are pending.
func (c *commands) fill(ctx context.Context) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{c.fail, c.late, c.family, c.cancelled, c.line} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// enqueue enqueues tasks in parts, and returns the ids.
func (c *commands) enqueue(ctx context.Context, n int, one func(i int) queue.Task) ([]string, error) {
	const part = 10000
	var ids []string
	for from := 0; from < n; from += part {
		receipts, err := c.q.EnqueueAll(ctx, tasks(min(part, n-from), func(i int) queue.Task { return one(from + i) }))
		if err := accepted(receipts, err); err != nil {
			return nil, err
		}
		for _, r := range receipts {
			ids = append(ids, r.ID)
		}
	}
	return ids, nil
}

func (c *commands) fail(ctx context.Context) error {
	if _, err := c.enqueue(ctx, rare, noop); err != nil {
		return err
	}
	claims, err := c.fetch(ctx, "default", rare)
	if err := enough(len(claims), rare, err); err != nil {
		return err
	}
	outcomes := completions(claims)
	for i := range outcomes {
		outcomes[i].Verb, outcomes[i].Error = queue.Fail, "the disk is full"
	}
	_, err = claim.Of(c.q).Settle(ctx, 0, who, queue.NewCall(), outcomes, claim.Ask{})
	return err
}

func (c *commands) late(ctx context.Context) error {
	if _, err := c.enqueue(ctx, rare, func(int) queue.Task { return queue.Task{Kind: "due", Timeout: time.Millisecond} }); err != nil {
		return err
	}
	pause(ctx, 20*time.Millisecond)
	return sweepAll(ctx, c.q, rare, rare)
}

// family makes an agent that waits for its children.
func (c *commands) family(ctx context.Context) error {
	ids, err := c.enqueue(ctx, 1, func(int) queue.Task { return queue.Task{Kind: "agent", Queue: "agents", Timeout: time.Hour} })
	if err != nil {
		return err
	}
	claims, err := c.fetch(ctx, "agents", 1)
	if err := enough(len(claims), 1, err); err != nil {
		return err
	}
	c.agent = ids[0]
	s := suspension(claims[0])
	s.Children, s.Wait.Members = nil, nil
	for i := range rare {
		id := fmt.Sprint(c.agent, ".", i+1)
		s.Children = append(s.Children, queue.Task{ID: id, Kind: "member", Payload: member})
		s.Wait.Members = append(s.Wait.Members, claim.Member{ID: id})
	}
	_, err = claim.Of(c.q).Suspend(ctx, s)
	return err
}

func (c *commands) cancelled(ctx context.Context) error {
	ids, err := c.enqueue(ctx, c.ended, noop)
	for len(ids) > 0 && err == nil {
		part := ids[:min(len(ids), 1000)]
		ids = ids[len(part):]
		_, err = c.q.CancelAll(ctx, part, "measured")
	}
	return err
}

func (c *commands) line(ctx context.Context) error {
	ids, err := c.enqueue(ctx, 2*rare, func(i int) queue.Task {
		task := noop(i)
		if i%2 == 0 {
			task.Queue = "few"
		} else {
			task.Kind = "few"
		}
		return task
	})
	if err != nil {
		return err
	}
	c.task = ids[0]
	_, err = c.enqueue(ctx, c.pending, noop)
	return err
}
