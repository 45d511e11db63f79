package main

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

func TestKindsAreListedWithTheirEndsAndDefaults(t *testing.T) {
	q, url := namespace(t, 0)
	at := " --redis " + url
	if out := expect(t, 0, "", "kind ls"+at); out != "" {
		t.Errorf("without kinds: %q", out)
	}
	w := &queuetest.Taker{Q: q, Worker: "w"}
	for _, o := range []queue.Outcome{{Verb: queue.Complete}, {Verb: queue.Complete}, {Verb: queue.Fail, Error: "no"}, {Verb: queue.Fail, Class: queue.ClassTimeout}} {
		o.ID = queuetest.Enqueue(t, q, queue.Task{Kind: "render", Queue: "gpu"}).ID
		o.Epoch = w.Take(t, o.ID, "gpu").Epoch
		w.Settle(t, o)
	}
	id := queuetest.Enqueue(t, q, queue.Task{Kind: "render"}).ID
	if _, err := q.Cancel(t.Context(), id, ""); err != nil {
		t.Fatal(err)
	}
	expect(t, 0, "send-mail  defaults: max_retries 2, timeout 30s\n", "kind set send-mail --timeout 30s --retries 2"+at)

	out := expect(t, 0, "", "kind ls -o wide"+at)
	if !strings.HasPrefix(out, "kind") || row(out, "send-mail") != "send-mail 0 0 0 0 0 - - - max_retries 2, timeout 30s" {
		t.Errorf("kind ls prints\n%s", out)
	}
	got := strings.Fields(row(out, "render"))
	if len(got) != 10 || strings.Join(got[:6], " ") != "render 2 2 1 1 0" || !strings.HasSuffix(got[6], "ms") || strings.Join(got[8:], " ") != "default,gpu -" {
		t.Errorf("render is %q", got)
	}
	if out := expect(t, 0, "", "kind ls -o id"+at); out != "render\nsend-mail\n" {
		t.Errorf("id: %q", out)
	}
	lines := jsonLines(t, expect(t, 0, "", "kind ls -o jsonl"+at))
	if r, m := lines[0], lines[1]; r["failed"] != 2.0 || r["timed_out"] != 1.0 || len(r["queues"].([]any)) != 2 || r["p99_ms"] == nil ||
		m["p99_ms"] != nil || m["fields"].(map[string]any)["timeout_ms"] != 30000.0 {
		t.Errorf("%v", lines)
	}

	out = expect(t, 0, "", "kind get render"+at)
	for _, want := range []string{"completed 2", "failed 2 (1 error, 1 timeout attempt)", "cancelled 1 (1 cancelled)", "workers 0", "in gpu 2 completed, 2 failed, 0 cancelled", "defaults -"} {
		if !strings.Contains(squeeze(out), want+"\n") && !strings.HasSuffix(squeeze(out), want) {
			t.Errorf("kind get prints\n%s\nwithout %q", out, want)
		}
	}
	code, out, errs := typing(t, "", "kind get rendr send-mail -o json"+at)
	if code != app.ExitNotFound || jsonLines(t, out)[0]["kind"] != "send-mail" || !strings.Contains(errs, `there is no kind "rendr" in this namespace (did you mean render?): `) {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

// A timeout is suggested from what the tasks of a kind took. It changes nothing, and says on what it is founded.
func TestATimeoutIsSuggested(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop", Partitions: 2})
		at := " --namespace shop --redis " + urlOf(rdb)
		w := &queuetest.Taker{Q: q, Worker: "w"}
		for range 3 {
			id := queuetest.Enqueue(t, q, queue.Task{Kind: "render"}).ID
			w.Settle(t, queue.Outcome{Verb: queue.Complete, ID: id, Epoch: w.Take(t, id, "default").Epoch})
		}
		before := redistest.Digest(t, rdb, "")
		got := jsonLines(t, expect(t, 0, "", "kind suggest render --factor 300 -o json"+at))[0]
		bound, _ := got["p995_ms"].(float64)
		if got["count"] != 3.0 || got["timed_out"] != 0.0 || bound <= 0 || got["attempt_timeout_ms"] != 3*bound || got["factor_percent"] != 300.0 {
			t.Errorf("it prints %v", got)
		}
		out := squeeze(expect(t, 0, "", "kind suggest render"+at))
		if !strings.Contains(out, "ended 3, 0 of them timed out") || !strings.Contains(out, "suggested --attempt-timeout ") || !strings.Contains(out, "(150 % of p99.5)") {
			t.Errorf("it prints\n%s", out)
		}
		code, _, errs := typing(t, "", "kind suggest rendr"+at)
		if code != app.ExitNotFound || !strings.Contains(errs, "there is no kind \"rendr\" in this namespace (did you mean render?)") {
			t.Errorf("exit %d: %s", code, errs)
		}
		expect(t, app.ExitUsage, "must be from 100 to 10000", "kind suggest render --factor 20"+at)
		if redistest.Digest(t, rdb, "") != before {
			t.Error("it has changed something")
		}
	})
}

// A default that is not named stays as it is.
func TestDefaultsOfAKindAreSetOneByOne(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop", Partitions: 2})
		at := " --namespace shop --redis " + urlOf(rdb)
		all := "--timeout 1m --queue-timeout 20s --attempt-timeout 10s --on-timeout retry --on-deadline fail --warn-percent 80 --cancel-grace 2s --timeout-grace 1s " +
			"--retries 5 --backoff-delay 1s --backoff-max 1m --backoff exponential --jitter 20 --retention 2h --hook-success s --hook-failure f --hook-timeout a:b/c --hook-cancel x"
		const stored = "attempt_timeout 10s, backoff exponential, backoff_delay 1s, backoff_max 1m, cancel_grace 2s, hook_cancel x, hook_failure f, hook_success s, hook_timeout a:b/c, jitter 20, max_retries 5, on_deadline fail, on_timeout retry, " +
			"queue_timeout 20s, retention 2h, timeout 1m, timeout_grace 1s, warn_percent 80"
		for _, step := range []struct{ args, want string }{
			{all, stored},
			{"--timeout 2m", strings.Replace(stored, " timeout 1m", " timeout 2m", 1)},
			{"--timeout 1m --warn-percent 80", stored},
			{"--hook-failure= --hook-success= --hook-timeout= --hook-cancel= --backoff-delay 0", "attempt_timeout 10s, backoff_delay 0s, cancel_grace 2s, max_retries 5, on_deadline fail, on_timeout retry, queue_timeout 20s, retention 2h, timeout 1m, timeout_grace 1s, warn_percent 80"},
			{"--retries 4", "attempt_timeout 10s, backoff_delay 0s, cancel_grace 2s, max_retries 4, on_deadline fail, on_timeout retry, queue_timeout 20s, retention 2h, timeout 1m, timeout_grace 1s, warn_percent 80"},
			{"--clear", "none"},
			{"--retries 2 --retry-expression tasks.render.code==75", `max_retries 2, on_timeout fail, retry_expression tasks.render.code==75`},
			{"--retries 3", `max_retries 3, on_timeout fail, retry_expression tasks.render.code==75`},
			{"--retry-expression= --on-timeout retry", "max_retries 3, on_timeout retry"},
			{"--timeout 5s --clear", "timeout 5s"},
			{"--timeout 0", "none"},
			{"--timeout none", "timeout none"},
			{"--retries 3", "max_retries 3, timeout none"},
			{"--backoff-delay none --timeout 0 --retries 0", "backoff_delay 0s"},
		} {
			if out := expect(t, 0, "", "kind set render "+step.args+at); out != "render  defaults: "+step.want+"\n" {
				t.Errorf("%s: %q, want %q", step.args, out, step.want)
			}
		}
		expect(t, 0, "", "kind set render --timeout 1m --retries 1"+at)
		r, err := q.Get(t.Context(), queuetest.Enqueue(t, q, queue.Task{Kind: "render"}).ID)
		if err != nil || r.MaxRetries != 1 || r.Deadline.Sub(r.CreatedAt).Seconds() != 60 {
			t.Errorf("a task of the kind: %+v, %v", r, err)
		}
		late := queue.Hook{Kind: "late", Queue: "alerts"}
		if err := q.DefineKind(t.Context(), "render", queue.Defaults{Hooks: queue.Hooks{OnTimeout: late}}); err != nil {
			t.Fatal(err)
		}
		expect(t, 0, "hook_cancel gone, hook_timeout late alerts", "kind set render --hook-cancel gone"+at)
		for args, want := range map[string]string{
			"kind set render --hook-cancel a!b":                "hook",
			"kind set render --jitter 5":                       "needs a Delay",
			"kind set render --queue-timeout none":             "queue_timeout_ms cannot be none: leave it out",
			"kind set render --retries 0 --retry-expression 1": "",
			"kind set a:b/c! --timeout 1s":                     "kind",
			"kind set render --timeout 1ns":                    "1ms",
			"kind set render --on-timeout retry --retries 0":   "needs max_retries of at least 1",
		} {
			before := redistest.Digest(t, rdb, "")
			if out := expect(t, app.ExitUsage, want, args+at); out != "" || redistest.Digest(t, rdb, "") != before {
				t.Errorf("%s: prints %q, or changed something", args, out)
			}
		}
	})
}

func TestWrongUseOfKindCommandsSaysWhatToDo(t *testing.T) {
	for args, want := range map[string]string{
		"kind define k":                   "there is no command `curfew kind define`: write ls, get, set or suggest",
		"kind lss":                        "(did you mean ls?)",
		"kind ls k":                       `kind ls takes no argument, and got "k"`,
		"kind ls -o text":                 `--output "text" must be table, wide, json, jsonl or id`,
		"kind get":                        "kind get needs the names of one or more kinds",
		"kind get k -o id":                `--output "id" must be text, json or jsonl`,
		"kind set k":                      "kind set needs a default to set, such as --timeout 30s, or --clear",
		"kind set --timeout 5s":           "kind set needs the name of one kind",
		"kind set a b --timeout 5s":       `kind set takes the name of one kind, and got "b" too`,
		"kind set k --timeout 5":          "has no unit: write 5s",
		"kind set k --timeout -5s":        "is negative",
		"kind set k --timout 5s":          "(did you mean --timeout?)",
		"kind set k --on-timeout again":   `--on-timeout "again" must be fail or retry`,
		"kind set k --on-deadline retry":  `--on-deadline "retry" must be cancel_all or fail`,
		"kind set k --backoff 1s":         `--backoff "1s" must be constant or exponential`,
		"kind set k --retries -1":         "--retries -1 must be from 0",
		"kind set k --retries many":       `--retries "many" must be a whole number`,
		"kind set k --warn-percent 100":   "--warn-percent 100 must be from 0 to 99",
		"kind set k --jitter 101":         "--jitter 101 must be from 0 to 100",
		"kind set k --clear=perhaps":      "--clear takes no value",
		"kind set k --retention":          "--retention needs a value",
		"kind set k --clear --namespace=": "--namespace must not be empty",
	} {
		code, out, errs := curfew(t, strings.Fields(args)...)
		if code != app.ExitUsage || !strings.Contains(errs, want) || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("curfew %s: exit %d, stderr %q, stdout %q; want exit 2 and %q", args, code, errs, out, want)
		}
	}
}

// A preset sets the attempt timeout alone, and the command prints what it has set.
func TestKindSetPreset(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		queuetest.Open(t, rdb, queue.Config{Namespace: "shop"})
		at := " --namespace shop --redis " + urlOf(rdb)
		expect(t, 0, "ask  defaults: attempt_timeout 5m, max_retries 2\n", "kind set ask --retries 2 --preset llm_call"+at)
		expect(t, 0, "ask  defaults: attempt_timeout 2m, max_retries 2\n", "kind set ask --preset mcp_tool"+at)
		before := redistest.Digest(t, rdb, "")
		expect(t, app.ExitUsage, "lm_call", "kind set ask --preset lm_call"+at)
		expect(t, app.ExitUsage, "give one of them", "kind set ask --preset llm_call --attempt-timeout 1s"+at)
		if redistest.Digest(t, rdb, "") != before {
			t.Error("a command that was refused has changed something")
		}
	})
}
