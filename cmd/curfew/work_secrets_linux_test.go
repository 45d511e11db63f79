package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/curfew-dev/curfew/queue"
)

// Neither a command nor another process that it can look into has the variables that lead to the password of Redis.
func TestCommandsDoNotSeeThePassword(t *testing.T) {
	t.Parallel()
	s := newWorkStage(t)
	config := filepath.Join(s.folder, "config")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// The shell, and the other children of the worker: the process that ends commands.
	const show = `for p in $$ $(cat /proc/$PPID/task/*/children); do tr '\0' '\n' </proc/$p/environ; done | sed -n 's/^\(CURFEW_CONFIG\|REDIS_URL\)=.*/\1/p' | sort -u | tr '\n' ' '`
	for _, c := range []struct {
		flags []string
		want  string
	}{{nil, ""}, {[]string{"--pass-redis"}, "CURFEW_CONFIG REDIS_URL "}} {
		w := s.startWith([]string{"CURFEW_CONFIG=" + config}, append(c.flags, "--kind", "show", "--", "/bin/sh", "-c", show)...)
		id := s.enqueue(queue.Task{Kind: "show"})
		if got := s.result(id); got != c.want {
			t.Errorf("with %q a command sees %q, want %q", c.flags, got, c.want)
		}
		w.Process.Signal(os.Interrupt)
		w.exit(t)
	}
}
