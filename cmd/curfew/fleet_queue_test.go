package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

// row returns the words of the line of an output that begins with a word.
func row(out, first string) string {
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == first {
			return strings.Join(words, " ")
		}
	}
	return ""
}

func TestQueuesAreListed(t *testing.T) {
	q, url := namespace(t, 3)
	at := " --redis " + url
	queuetest.Open(t, q.Client(), queue.Config{Namespace: "empty"})
	if out := expect(t, 0, "", "queue ls --namespace empty"+at); out != "" {
		t.Errorf("without queues: %q", out)
	}
	w := &queuetest.Taker{Q: q, Worker: "w"}
	for _, verb := range []queue.Verb{queue.Complete, queue.Fail} {
		id := queuetest.Enqueue(t, q, queue.Task{Queue: "mail"}).ID
		claim := w.Take(t, id, "mail")
		w.Settle(t, queue.Outcome{ID: id, Epoch: claim.Epoch, Verb: verb})
	}
	expect(t, 0, "mail  limited to 6 running, 10/1s burst 4: 0 tasks in line", "queue limit mail --running 6 --rate 10/1s --burst 4"+at)
	expect(t, 0, "default  paused: 3 tasks in line", "queue pause default"+at)

	out := expect(t, 0, "", "queue ls"+at)
	want := "" +
		"queue    in line  running  waiting  dead  workers  paused  limits                      completed  failed  timed out\n" +
		"default        3        0        0     0  ?  paused  -                                   0       0          0\n" +
		"mail           0        0        0     1  ?  -       6 running, 10/1s burst 4          1       1          0\n"
	if squeeze(out) != squeeze(want) {
		t.Errorf("queue ls prints\n%s\nwant\n%s", out, want)
	}
	if out := expect(t, 0, "", "queue ls -o wide"+at); row(out, "mail") != "mail 0 0 0 1 ? - 6 running, 10/1s burst 4 1 1 0 0 2" {
		t.Errorf("wide: %s", out)
	}
	if out := expect(t, 0, "", "queue ls -o id"+at); out != "default\nmail\n" {
		t.Errorf("id: %q", out)
	}
	lines := jsonLines(t, expect(t, 0, "", "queue ls -o jsonl"+at))
	if mail := lines[1]; len(lines) != 2 || lines[0]["paused"] != 1.0 || lines[0]["ready"] != 3.0 || mail["max_running"] != 6.0 || mail["rate"] != 10.0 ||
		mail["per_ms"] != 1000.0 || mail["burst"] != 4.0 || mail["failed"] != 1.0 || mail["dead"] != 1.0 {
		t.Errorf("%v", lines)
	}
	if out := expect(t, 0, "", "queue ls -o json"+at); !strings.HasPrefix(out, `[{"queue":"default",`) {
		t.Errorf("json: %s", out)
	}

	out = expect(t, 0, "", "queue get mail"+at)
	if !strings.HasPrefix(out, "mail\n") || row(out, "limits") != "limits 6 running, 10/1s burst 4" || row(out, "paused") != "paused -" {
		t.Errorf("queue get prints\n%s", out)
	}
	code, out, errs := typing(t, "", "queue get mial default -o json"+at)
	if code != app.ExitNotFound || jsonLines(t, out)[0]["queue"] != "default" ||
		errs != "curfew: there is no queue \"mial\" in this namespace (did you mean mail?): `curfew queue ls` lists the queues\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

// squeeze returns lines with single spaces.
func squeeze(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// Without --force a queue that does not exist is not made.
func TestAQueueThatDoesNotExistIsNotControlled(t *testing.T) {
	q, url := namespace(t, 1)
	at := " --redis " + url
	before := redistest.Digest(t, q.Client(), "")
	for _, args := range []string{"pause defalt", "resume defalt", "limit defalt --running 4", "limit defalt --rate 4/1s", "drain defalt --yes", "drain defalt"} {
		out := expect(t, app.ExitNotFound, "there is no queue \"defalt\" in this namespace (did you mean default?): `curfew queue ls` lists the queues, and --force is for one", "queue "+args+at)
		if out != "" {
			t.Errorf("%s prints %q", args, out)
		}
	}
	if redistest.Digest(t, q.Client(), "") != before {
		t.Error("a refused command changed something")
	}
	expect(t, 0, "new  paused: 0 tasks in line", "queue pause new --force"+at)
	if line := jsonLines(t, expect(t, 0, "", "queue limit other --running 2 --force -o json"+at))[0]; line["queue"] != "other" || line["max_running"] != 2.0 {
		t.Errorf("%v", line)
	}
	expect(t, app.ExitUsage, `queue "a:b" must be`, "queue pause --force a:b"+at)
}

func TestControlsOfAQueueComeAndGo(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop", Partitions: 2})
		queuetest.Enqueue(t, q, queue.Task{Queue: "mail"})
		at := " --namespace shop --redis " + urlOf(rdb)
		for _, step := range []struct{ args, want string }{
			{"limit mail --running 4", "mail  limited to 4 running: 1 task in line\n"},
			{"limit mail --rate 6/m", "mail  limited to 4 running, 6/1m: 1 task in line\n"},
			{"limit mail --running none", "mail  limited to 6/1m: 1 task in line\n"},
			{"limit mail --rate 0", "mail  has no limits: 1 task in line\n"},
			{"limit mail --length 1001", "mail  limited to 1,002 in line: 1 task in line\n"},
			{"limit mail --length 2 --running 2", "mail  limited to 2 running, 2 in line: 1 task in line\n"},
			{"limit mail --length none --running 0", "mail  has no limits: 1 task in line\n"},
			{"limit mail --rate 20/500ms --burst 2 --running 2", "mail  limited to 2 running, 20/500ms burst 2: 1 task in line\n"},
			{"limit mail --rate none --running 0", "mail  has no limits: 1 task in line\n"},
			{"limit mail --length 0", "mail  has no limits: 1 task in line\n"},
			{"pause mail", "mail  paused: 1 task in line\n"},
			{"resume mail", "mail  resumed: 1 task in line\n"},
		} {
			if out := expect(t, 0, "", "queue "+step.args+at); out != step.want {
				t.Errorf("%s: %q, want %q", step.args, out, step.want)
			}
		}
		stats, err := q.Stats(t.Context())
		if err != nil || stats.Queues[0].Paused || stats.Queues[0].MaxRunning != 0 || stats.Queues[0].Rate != (queue.Rate{}) {
			t.Errorf("%+v, %v", stats, err)
		}
		expect(t, app.ExitUsage, "1 cannot be shared by 2 partitions", "queue limit mail --running 1"+at)
		expect(t, app.ExitUsage, "1 cannot be shared by 2 partitions, since each gives its first task at once: allow at least 2, or use a namespace with 1 partitions; --running is set", "queue limit mail --running 8 --rate 5/1s --burst 1"+at)
		expect(t, app.ExitUsage, "with 1 partitions; --length is set", "queue limit mail --length 8 --rate 5/1s --burst 1"+at)
		expect(t, 0, "", "queue limit mail --length none"+at)
	})
}

func TestAQueueIsDrainedOnceItsNameIsTyped(t *testing.T) {
	q, url := namespace(t, 5)
	at := " --redis " + url
	before := redistest.Digest(t, q.Client(), "")
	for _, row := range []struct{ input, want string }{
		{"", "nothing was changed: type the name of the queue, or give --yes"},
		{"y\n", "nothing was changed: y is not the name of the queue, default"},
		{"\x1b[2J\n", `nothing was changed: "\x1b[2J" is not the name`},
	} {
		code, out, errs := typing(t, row.input, "queue drain default"+at)
		if code != app.ExitFailed || out != "" || !strings.Contains(errs, "This cancels 5 tasks in line in default. Type the name of the queue to go on: ") ||
			!strings.Contains(errs, row.want) || redistest.Digest(t, q.Client(), "") != before {
			t.Errorf("%q: exit %d, %q, %q", row.input, code, out, errs)
		}
	}
	if code, out, errs := typing(t, "default\n", "queue drain default"+at); code != 0 || out != "default  drained: 5 tasks cancelled\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	id := add(t, q)
	if line := jsonLines(t, expect(t, 0, "", "queue drain default --yes --reason storm -o json"+at))[0]; line["queue"] != "default" || line["cancelled"] != 1.0 {
		t.Errorf("%v", line)
	}
	if r, err := q.Get(t.Context(), id); err != nil || r.Error != "storm" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestWrongUseOfQueueCommandsSaysWhatToDo(t *testing.T) {
	for args, want := range map[string]string{
		"queue list":                            "there is no command `curfew queue list`: write ls, get, pause, resume, drain or limit",
		"queue puase x":                         "(did you mean pause?)",
		"queue ls mail":                         "queue ls takes no argument, and got \"mail\"",
		"queue ls -o yaml":                      `--output "yaml" must be table, wide, json, jsonl or id`,
		"queue ls --namespace=":                 "--namespace must not be empty",
		"queue get":                             "queue get needs the names of one or more queues: see",
		"queue get x -o wide":                   `--output "wide" must be text, json or jsonl`,
		"queue pause":                           "queue pause needs the name of one queue: see",
		"queue pause a b":                       `queue pause takes the name of one queue, and got "b" too`,
		"queue resume a --frce":                 "(did you mean --force?)",
		"queue resume a --redis localhost":      "must begin with redis://",
		"queue drain":                           "queue drain needs the name of one queue",
		"queue drain a --yes=x":                 "--yes takes no value",
		"queue limit a":                         "queue limit needs --running, --rate or --length: see `curfew queue limit --help`",
		"queue limit --running 2":               "queue limit needs the name of one queue",
		"queue limit a --burst 2":               "--burst needs --rate",
		"queue limit a --running 2 --burst 2":   "--burst needs --rate",
		"queue limit a --rate none --burst 2":   "--burst needs --rate",
		"queue limit a --running x":             `--running "x": write a whole number such as 20, or none`,
		"queue limit a --running -1":            `--running "-1": write a whole number such as 20, or none`,
		"queue limit a --running 99999999999":   "write a whole number such as 20",
		"queue limit a --running=":              "write a whole number such as 20",
		"queue limit a --rate 10":               `--rate "10": write how many tasks in which time, such as 10/1s, or none`,
		"queue limit a --rate 0/1s":             "such as 10/1s, or none",
		"queue limit a --rate x/1s":             "such as 10/1s, or none",
		"queue limit a --rate 10/1":             "has no unit: write 1s",
		"queue limit a --rate 10/":              "--rate \"10/\"",
		"queue limit a --rate 10/0s":            "the time must be 1ms or more",
		"queue limit a --rate 10/1s --burst x":  `--burst "x": write a whole number such as 10`,
		"queue limit a --rate 10/1s --burst 0":  `--burst "0": write a whole number such as 10`,
		"queue limit a --rate 10/fortnight":     "--rate",
		"queue limit a --rate 10/1s --runing 2": "(did you mean --running?)",
	} {
		code, out, errs := curfew(t, strings.Fields(args)...)
		if code != app.ExitUsage || !strings.Contains(errs, want) || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("curfew %s: exit %d, stderr %q, stdout %q; want exit 2 and %q", args, code, errs, out, want)
		}
	}
}

// The number of calls does not grow with the number of queues: 5,000 are listed in at most 60.
func TestTheCostOfAListOfQueuesIsBounded(t *testing.T) {
	server := redistest.Start(t)
	rdb := server.Client(t)
	q := queuetest.Open(t, rdb, queue.Config{})
	manyQueues(t, q, 5000)
	before := commands(t, rdb)
	began := time.Now()
	_, out, errs := typing(t, "", "queue ls --redis redis://"+server.Addr)
	took := time.Since(began)
	s := commands(t, rdb).since(before)
	t.Logf("5,000 queues: %d commands, %d reads, %d us of Redis, %v", s.calls, s.reads, s.usec, took)
	if lines := strings.Count(out, "\n"); lines != 5001 || max(s.calls, s.reads) > 60 || errs != "no worker lives: 5,000 tasks are in line\n" {
		t.Errorf("%d lines in %d commands and %d reads, want a heading and 5,000 in at most 60", lines, s.calls, s.reads)
	}
}

// spent is how many commands clients have sent, for how many us Redis worked on them, and how often it read from a connection.
type spent struct{ calls, usec, reads int }

func (s spent) since(before spent) spent {
	return spent{s.calls - before.calls, s.usec - before.usec, s.reads - before.reads}
}

// commands returns what was spent. The calls are of the commands that these tests know, since Redis also counts those of scripts, whose
// time is that of the script. The reads are of all commands: they show one that is not in the list.
func commands(t *testing.T, rdb redis.UniversalClient) (sum spent) {
	t.Helper()
	info, err := rdb.InfoMap(t.Context(), "commandstats", "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fcall", "fcall_ro", "evalsha", "evalsha_ro", "eval", "zcount", "zrangebyscore", "mget", "xrevrange", "info"} {
		var s spent
		fmt.Sscanf(info["Commandstats"]["cmdstat_"+name], "calls=%d,usec=%d", &s.calls, &s.usec)
		sum.calls, sum.usec = sum.calls+s.calls, sum.usec+s.usec
	}
	if sum.reads, err = strconv.Atoi(info["Stats"]["total_reads_processed"]); err != nil {
		t.Fatal(err)
	}
	return sum
}

// manyQueues enqueues a task in each of n queues.
func manyQueues(t *testing.T, q *queue.Queue, n int) {
	t.Helper()
	var tasks []queue.Task
	for i := range n {
		tasks = append(tasks, queue.Task{Kind: "k", Queue: fmt.Sprintf("q%d", i), Timeout: time.Hour})
	}
	if _, err := q.EnqueueAll(t.Context(), tasks); err != nil {
		t.Fatal(err)
	}
}

// urlOf returns the URL of the database of a client.
func urlOf(rdb redis.UniversalClient) string {
	options := rdb.(*redis.Client).Options()
	return fmt.Sprintf("redis://%s/%d", options.Addr, options.DB)
}

// A producer learns from the exit code that a queue is full, and a batch that some of its tasks were refused.
func TestAFullQueueIsRefused(t *testing.T) {
	rdb, url := database(t)
	q, at := queuetest.Open(t, rdb, queue.Config{Namespace: "shop"}), " --namespace shop --redis "+url
	queuetest.Enqueue(t, q, queue.Task{})
	expect(t, 0, "default  limited to 2 in line: 1 task in line", "queue limit default --length 2"+at)
	expect(t, 0, "", "enqueue k"+at)
	expect(t, app.ExitRefused, "the queue is full: default has reached its maximum length of 2 in partition 0: enqueue the task again later", "enqueue k"+at)
	code, out, errs := typing(t, `{"kind":"k"}`+"\n"+`{"kind":"k","queue":"other"}`+"\n", "enqueue --batch -"+at)
	if code != app.ExitFailed || len(strings.Fields(out)) != 1 || !strings.Contains(errs, "line 1: the queue is full: default has") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if line := jsonLines(t, expect(t, 0, "", "queue get default -o json"+at))[0]; line["refused"] != 2.0 {
		t.Errorf("queue get prints %v, want 2 refused tasks", line)
	}
	if out := squeeze(expect(t, 0, "", "queue get default"+at)); !strings.Contains(out, "refused 2") {
		t.Errorf("queue get prints\n%s", out)
	}
	for _, word := range []string{"many", "-1", "1.5", "", "99999999999"} {
		expect(t, app.ExitUsage, "--length "+strconv.Quote(word)+": write a whole number such as 10000, or none", `queue limit default --length=`+word+at)
	}
	queuetest.Sound(t, q)
}
