package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/cmd/curfew/internal/app"
	"github.com/curfew-dev/curfew/internal/redistest"
)

// built returns the command, built as users build it.
func built(t *testing.T) string {
	t.Helper()
	path := t.TempDir() + "/curfew"
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

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
				out, err := exec.Command(curfew, strings.Fields("demo "+row.args+on)...).CombinedOutput()
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

func TestScenesSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	dead := redistest.Start(t)
	dead.Kill()
	for _, scene := range []string{"crash", "fanout"} {
		t.Run(scene, func(t *testing.T) {
			t.Parallel()
			expect(t, app.ExitUnreachable, "give the server's address with --redis", "demo "+scene+" --redis redis://"+dead.Addr)
		})
	}
}
