package examples_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/linked"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// TestProgramsInGo builds the programs and the command once.
func TestProgramsInGo(t *testing.T) {
	programs := map[string]string{}
	for _, name := range []string{"web", "approval", "fanout"} {
		code, err := os.ReadFile(name + "/main.go")
		if err != nil {
			t.Fatal(err)
		}
		programs[name] = string(code)
	}
	dir := linked.Build(t, "..", "cmd/curfew", programs)
	for name, test := range map[string]func(*testing.T, string){
		"the web service answers with the result or the deadline": theWebServiceAnswersWithTheResultOrTheDeadline,
		"the web service ends with its workers":                   theWebServiceEndsWithItsWorkers,
		"the web service ends while a client waits":               theWebServiceEndsWhileAClientWaits,
		"a refund needs an approval":                              aRefundNeedsAnApproval,
		"a refund is refused without an approval":                 aRefundIsRefusedWithoutAnApproval,
		"a fan-out reports what is done by its deadline":          aFanOutReportsWhatIsDoneByItsDeadline,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, dir)
		})
	}
}

// demo is a program in Go, run by the commands of its comment.
type demo struct {
	*site
	commands []string
	id       string // what a command has stored in the variable id
}

// newDemo starts the programs of the comment that end with &. Replacements are words for other words of the commands.
func newDemo(t *testing.T, dir, name string, replacements ...string) *demo {
	t.Helper()
	text, err := os.ReadFile(name + "/main.go")
	if err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t)
	d := &demo{site: &site{t, queuetest.Open(t, server.Client(t), queue.Config{}), append(os.Environ(), "REDIS_URL=redis://"+server.Addr, "PATH="+dir+":"+os.Getenv("PATH"))}}
	comment, _, _ := strings.Cut(string(text), "\npackage main")
	for _, found := range regexp.MustCompile(`(?m)^//\t(.*)$`).FindAllStringSubmatch(comment, -1) {
		line := strings.ReplaceAll(found[1], "go run ./examples/", dir+"/")
		line = strings.NewReplacer(replacements...).Replace(line)
		if program, background := strings.CutSuffix(line, " &"); background {
			d.start("", strings.Fields(program)...)
			continue
		}
		d.commands = append(d.commands, line)
	}
	if len(d.commands) == 0 {
		t.Fatal("the comment has no commands")
	}
	return d
}

// run runs a command of the shell, and returns its output, with stderr if it fails, and its exit code.
func (d *demo) run(line string) (string, int) {
	d.Helper()
	_, assigns := strings.CutPrefix(line, "id=")
	if assigns {
		line += ` && echo "$id"`
	}
	cmd := exec.CommandContext(d.Context(), "sh", "-c", line)
	cmd.Env = append(d.env, "id="+d.id)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	text := strings.TrimSpace(string(out))
	if cmd.ProcessState == nil {
		d.Fatalf("%s: %v", line, err)
	}
	if err != nil {
		text += errs.String()
	}
	if assigns && err == nil {
		d.id = text
	}
	return text, cmd.ProcessState.ExitCode()
}

// succeeds runs a command until it succeeds, since a program that it needs may have just begun.
func (d *demo) succeeds(line string) (out string) {
	d.Helper()
	code := 0
	await.Until(d, line, func() bool {
		out, code = d.run(line)
		return code == 0
	})
	return out
}

// freePort returns an address on which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func theWebServiceAnswersWithTheResultOrTheDeadline(t *testing.T, dir string) {
	addr := freePort(t)
	// A busy machine may need more time than the comment gives.
	d := newDemo(t, dir, "web", "localhost:8080", addr, "timeout=10s", "timeout=1m", "wait=5s", "wait=30s")
	d.succeeds(d.commands[0])
	if out := d.succeeds(d.commands[1]); out != "hello Ada" {
		t.Errorf("the result is %q", out)
	}
	begun := time.Now()
	hang := fmt.Sprintf("id=$(curl -sS --fail-with-body -d nobody '%s/greetings?timeout=700ms')", addr)
	d.succeeds(hang)
	ask := func(wait string) (string, string) {
		out, _ := d.run(fmt.Sprintf(`curl -sS -w '\n%%{http_code}' "%s/greetings/$id%s"`, addr, wait))
		body, code, _ := strings.Cut(out, "\n")
		return body, strings.TrimSpace(code)
	}
	if body, code := ask("?wait=1ms"); code != "202" && time.Since(begun) < 500*time.Millisecond {
		t.Errorf("a task that runs is answered with %s %s, want 202", code, body)
	}
	record := d.status(d.id, queue.Failed)
	if body, code := ask(""); code != "504" || !strings.Contains(body, record.Deadline.UTC().Format(time.RFC3339Nano)) {
		t.Errorf("a task that timed out is answered with %s %s, want 504 and its deadline %v", code, body, record.Deadline)
	}
	for _, id := range []string{"0-NOBODY", "x y"} {
		d.id = strings.ReplaceAll(id, " ", "%20")
		if body, code := ask(""); code != "404" {
			t.Errorf("task %q is answered with %s %s, want 404", id, code, body)
		}
	}
	if out, _ := d.run(fmt.Sprintf("curl -sS -w '%%{http_code}' -d x '%s/greetings?timeout=soon'", addr)); !strings.HasSuffix(out, "400") {
		t.Errorf("a timeout that is not valid is answered with %s, want 400", out)
	}
	for _, wait := range []string{"soon", "5", "-1s", "0s"} {
		if body, code := ask("?wait=" + wait); code != "400" {
			t.Errorf("the wait %s is answered with %s %s, want 400", wait, code, body)
		}
	}
}

// The web service and its workers end after SIGTERM, also if they run in one process. If one of them fails, both end.
func theWebServiceEndsWithItsWorkers(t *testing.T, dir string) {
	addr := freePort(t)
	d := newDemo(t, dir, "web", "localhost:8080", addr)
	own := freePort(t)
	both := d.start("", dir+"/web", "-addr", own)
	d.succeeds(fmt.Sprintf("id=$(curl -sS --fail-with-body -d Eve '%s/greetings?timeout=1m')", own))
	if out := d.succeeds(fmt.Sprintf(`curl -sS --fail-with-body "%s/greetings/$id"`, own)); out != "hello Eve" {
		t.Errorf("the result is %q", out)
	}
	both.Signal(syscall.SIGTERM)
	await.Receive(t, both.Done(), "the process to end")
	if !both.Succeeded() {
		t.Errorf("it failed: %s", &both.said)
	}
	// A port that is taken ends the workers too.
	busy, err := net.Listen("tcp", own)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	refused := d.start("", dir+"/web", "-addr", own)
	await.Receive(t, refused.Done(), "the process to end")
	if refused.Succeeded() || !strings.Contains(refused.said.String(), "address already in use") {
		t.Errorf("where its port is taken it says %s", &refused.said)
	}
}

// A client can wait for as long as it likes. It is answered when the web service ends.
func theWebServiceEndsWhileAClientWaits(t *testing.T, dir string) {
	addr := freePort(t)
	d := newDemo(t, dir, "web", "localhost:8080", freePort(t))
	web := d.start("", dir+"/web", "-role", "web", "-addr", addr)
	d.succeeds(fmt.Sprintf("id=$(curl -sS --fail-with-body -d nobody '%s/greetings?timeout=1h')", addr))
	d.start("", "curl", "-sS", fmt.Sprintf("%s/greetings/%s?wait=1000h", addr, d.id))
	p, err := queue.PartitionOf(d.id)
	if err != nil {
		t.Fatal(err)
	}
	channel := d.q.Engine().EndedChannel(p)
	await.Until(t, "the client waits", func() bool { return d.q.Client().PubSubNumSub(t.Context(), channel).Val()[channel] == 1 })
	web.Signal(syscall.SIGTERM)
	await.Receive(t, web.Done(), "the process to end")
}

func aRefundNeedsAnApproval(t *testing.T, dir string) {
	d := newDemo(t, dir, "approval")
	out := ""
	for _, line := range d.commands {
		out = d.succeeds(line)
	}
	if !strings.Contains(out, `"refunded":true`) && !strings.Contains(out, `\"refunded\":true`) || !strings.Contains(out, "approved by Ada: 4200 cents for order 17") {
		t.Errorf("it ends with %s", out)
	}
	// Somebody says no.
	d.succeeds(d.commands[0])
	d.succeeds(d.commands[1])
	d.succeeds(`curfew resolve $id.approval --error "too much"`)
	if out := d.succeeds(d.commands[len(d.commands)-1]); !strings.Contains(out, "too much") || strings.Contains(out, "approved") {
		t.Errorf("a refund that was rejected ends with %s", out)
	}
}

func aRefundIsRefusedWithoutAnApproval(t *testing.T, dir string) {
	d := newDemo(t, dir, "approval", "-within 1m", "-within 300ms")
	d.succeeds(d.commands[0])
	if out := d.succeeds(d.commands[len(d.commands)-1]); !strings.Contains(out, "nobody has approved it within 300ms") {
		t.Errorf("it ends with %s", out)
	}
	if out, code := d.run(`curfew resolve $id.approval '"Ada"'`); code != 5 {
		t.Errorf("an approval that comes too late: exit %d, %s; want 5", code, out)
	}
}

func aFanOutReportsWhatIsDoneByItsDeadline(t *testing.T, dir string) {
	d := newDemo(t, dir, "fanout")
	var out string
	var code int
	var lines []string
	for _, by := range []string{"2s", "10s", "30s"} { // on a busy machine the tasks can take longer
		out, code = d.run(strings.Replace(d.commands[0], "-by 2s", "-by "+by, 1))
		if lines = strings.Split(out, "\n"); strings.Count(out, "not done: ") < 2 {
			break
		}
	}
	if code != 0 || len(lines) != 3 || lines[0] != "task 1: done in 100ms" || lines[1] != "task 2: done in 300ms" || !strings.HasPrefix(lines[2], "task 3: not done: ") {
		t.Errorf("exit %d: %s", code, out)
	}
	if out, code := d.run(strings.NewReplacer("-by 2s", "-by 300ms", "100ms 300ms 1h", "1h 2h").Replace(d.commands[0])); code != 0 || strings.Count(out, "not done: ") != 2 {
		t.Errorf("where all hang: exit %d: %s", code, out)
	}
	if out, code := d.run(d.commands[0] + " soon"); code != 1 || !strings.Contains(out, `"soon" is not a duration`) {
		t.Errorf("a wrong duration: exit %d: %s", code, out)
	}
}
