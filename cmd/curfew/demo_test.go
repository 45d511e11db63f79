package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/internal/redistest"
)

// Scenes keep their promises on both servers, and leave nothing on a real one.
func TestScenes(t *testing.T) {
	t.Parallel()
	curfew := built(t)
	server := redistest.Start(t)
	for _, row := range []struct{ args, want string }{
		{"crash --timeout 1s", `(?s)killed the process \d+ .*TIMEOUT.*given back.*completed`},
		{"fanout --timeout 300ms", `(?s)with 16 of 20 tasks.*cancelled.*woke +fanout`},
	} {
		for _, on := range []string{"", " --redis redis://" + server.Addr} {
			t.Run(row.args+on, func(t *testing.T) {
				cmd := exec.Command(curfew, strings.Fields("demo "+row.args+on)...)
				cmd.Env = append(os.Environ(), "CURFEW_REDIS_URL=redis://"+nobody, "REDIS_URL=redis://"+nobody) // the scene has a server of its own
				out, err := cmd.CombinedOutput()
				if err != nil || !regexp.MustCompile(row.want).Match(out) || !strings.Contains(string(out), "The scene kept its promises") {
					t.Errorf("%v\n%s\nwant %s", err, out, row.want)
				}
			})
		}
	}
	if keys := server.Client(t).Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("the scenes left %q", keys)
	}
}
