package facade

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/internal/test/testclock"
)

var update = flag.Bool("update", false, "write the replies into docs/reference/protocol.md")

const page = "../../../docs/reference/protocol.md"

// The commands of docs/reference/protocol.md give the replies that stand there. The clock stands still, so
// that ids and instants are always the same; sleep moves it.
func TestThePageTellsRealReplies(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t)
	rdb := server.Client(t)
	if err := rdb.FunctionLoad(t.Context(), testclock.Facade(t).Text()).Err(); err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(server.Addr, ":")
	now, commands := testclock.Start, 0
	run := func(command string) string {
		commands++
		if seconds, found := strings.CutPrefix(command, "sleep "); found {
			n, err := strconv.Atoi(seconds)
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(time.Duration(n) * time.Second)
			testclock.Set(t, rdb, "curfew:{0}", now)
			return ""
		}
		out, err := exec.Command("bash", "-c", "redis-cli() { command redis-cli --no-raw -p "+port+` "$@"; }; `+command).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
		return strings.TrimRight(string(out), "\n") + "\n"
	}
	var real strings.Builder
	for i, part := range strings.Split(string(text), "```") {
		if i > 0 {
			real.WriteString("```")
		}
		block, console := strings.CutPrefix(part, "console\n")
		if !console {
			real.WriteString(part)
			continue
		}
		real.WriteString("console\n")
		for n, line := range strings.Split(block, "\n$ ") {
			command, _, _ := strings.Cut(strings.TrimPrefix(line, "$ "), "\n")
			if n > 0 {
				real.WriteString("\n")
			}
			fmt.Fprintf(&real, "$ %s\n%s", command, run(command))
		}
	}
	if commands < 15 {
		t.Errorf("the page has %d commands, want those of a producer and a worker", commands)
	}
	if *update {
		if err := os.WriteFile(page, []byte(real.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if real.String() != string(text) {
		t.Errorf("the replies are others: run go test ./internal/test/facade -run Page -update, and look at what changes\n%s", redistest.Diff(string(text), real.String()))
	}
}
