package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/curfew-dev/curfew/cmd/internal/app"
	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
)

func TestNamespacesAreCreatedAndListed(t *testing.T) {
	rdb, url := database(t)
	url = " --redis " + url
	expect(t, 0, "0 namespaces; looked at all 0 keys on 1 master", "namespace ls"+url)
	expect(t, 0, "shop  created: 2 partitions, events all, 9 MiB of events a partition, figures off", "namespace create shop --partitions 2 --events all --event-mib 9 --figures off"+url)
	expect(t, 0, "shop  exists: 2 partitions", "namespace create shop --partitions 2"+url)
	expect(t, app.ExitFailed, "the namespace shop exists with other settings, and nothing was changed: partitions: it has 2, not 4; events: it has all, not none", "namespace create shop --partitions 4 --events none"+url)
	expect(t, 0, "b  created: 1 partition, events terminal, 64 MiB of events a partition, figures on", "namespace create b"+url)
	queuetest.Enqueue(t, queuetest.Open(t, rdb, queue.Config{Namespace: "b"}), queue.Task{})

	out := expect(t, 0, "2 namespaces; looked at all ", "namespace ls"+url)
	lines := strings.Split(out, "\n")
	for i, want := range []string{"namespace version partitions events queues live enqueued", "b 2 1 terminal 1 1 1", "shop 2 2 all 0 0 0"} {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != want {
			t.Errorf("line %d is %q, want %q", i, got, want)
		}
	}
	objects := jsonLines(t, expect(t, 0, "", "namespace ls -o json"+url))
	end := objects[len(objects)-1]
	if len(objects) != 3 || objects[1]["namespace"] != "shop" || objects[1]["event_mib"] != 9.0 || objects[1]["figures"] != "off" ||
		end["type"] != "end" || end["complete"] != true || end["namespaces"] != 2.0 || end["masters"] != 1.0 {
		t.Errorf("%v", objects)
	}
	out = expect(t, app.ExitNotFound, "there is no namespace \"x\" or \"y\" on this Redis", "namespace ls x b y"+url)
	if !strings.Contains(out, "b  ") || strings.Contains(out, "shop") || strings.Contains(out, "looked") {
		t.Errorf("ls b prints %s", out)
	}
}

// A list that does not look at all keys says how far it looked.
func TestAListSaysHowFarItLooked(t *testing.T) {
	rdb, url := database(t)
	url = " --redis " + url
	args := []any{}
	for i := range 10_000 {
		args = append(args, fmt.Sprint("k", i), i)
	}
	rdb.MSet(t.Context(), args...)
	expect(t, 0, "0 namespaces so far; looked at about 2,000 of 10,000 keys: --keys 0 looks at all", "namespace ls --keys 2000"+url)
	if lines := jsonLines(t, expect(t, 0, "", "namespace ls --keys 2000 -o json"+url)); lines[0]["complete"] != false || lines[0]["looked_at_keys"] != 2000.0 {
		t.Errorf("%v", lines)
	}
}

func TestANamespaceIsRemovedOnceItsNameIsTyped(t *testing.T) {
	rdb, url := database(t)
	url = " --redis " + url
	rdb.Set(t.Context(), "other", "x", 0)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop", Partitions: 2})
	for range 3 {
		queuetest.Enqueue(t, q, queue.Task{})
	}
	rdb.Set(t.Context(), "shop:{0}:mine", "x", 0)
	before := redistest.Digest(t, rdb, "")
	for _, row := range []struct {
		input, args string
		code        int
		want        string
	}{
		{"", "", app.ExitFailed, "nothing was removed: type the name of the namespace, or give --yes"},
		{"y\n", "", app.ExitFailed, "nothing was removed: y is not the name of the namespace, shop"},
		{"\x1b[2J\n", "", app.ExitFailed, `nothing was removed: "\x1b[2J" is not the name`},
		{"shop\n", " --dry-run", 0, ""},
		{"", " --dry-run -o json", 0, ""},
	} {
		code, out, errs := typing(t, row.input, "namespace rm shop"+row.args+url)
		if code != row.code || !strings.Contains(errs, row.want) || redistest.Digest(t, rdb, "") != before {
			t.Errorf("%q%s: exit %d, %q, %q", row.input, row.args, code, out, errs)
		}
		if strings.Contains(row.args, "json") {
			if found := jsonLines(t, out)[0]; found["type"] != "found" || found["key_counts"].(map[string]any)["spec"] != 3.0 || found["unknown"] != 1.0 {
				t.Errorf("%v", found)
			}
		} else if !strings.Contains(out, "  spec                  3\n") || !strings.Contains(out, "such as shop:{0}:mine; this version of Curfew does not write these keys, and they are left") ||
			!strings.Contains(out, fmt.Sprintf("shop has %d keys", count(t, rdb)-1)) {
			t.Errorf("%q%s prints\n%s", row.input, row.args, out)
		}
	}
	code, out, errs := typing(t, " shop \n", "namespace rm shop"+url)
	if code != 0 || !strings.Contains(errs, "Type its name to go on: ") || !strings.Contains(out, "keys of shop; 1 key is left, which this version of Curfew does not write, such as shop:{0}:mine: --unknown removes them too") ||
		count(t, rdb) != 2 {
		t.Errorf("exit %d, %q, %q; %d keys are left", code, out, errs, count(t, rdb))
	}
	if removed := jsonLines(t, expect(t, 0, "", "namespace rm shop --unknown --yes -o json"+url))[0]; removed["type"] != "removed" || count(t, rdb) != 1 {
		t.Errorf("%v; %d keys are left", removed, count(t, rdb))
	}
	expect(t, app.ExitNotFound, "there is no namespace \"shop\" on this Redis", "namespace rm shop --yes"+url)
}

// The embedded server has the functions built in, so there is nothing to remark.
func TestANamespaceIsCreatedOnTheEmbeddedServer(t *testing.T) {
	expect(t, 0, "shop  created", "namespace create shop --partitions 2 --redis redis://"+redistest.Embedded(t).Addr())
}

func TestANamespaceInUseIsRemovedByForceOnly(t *testing.T) {
	rdb, url := database(t)
	url = " --redis " + url
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop"})
	(&queuetest.Taker{Q: q, Worker: "w1"}).Take(t, queuetest.Enqueue(t, q, queue.Task{}).ID, "default")
	for _, args := range []string{"", " --yes"} {
		expect(t, app.ExitFailed, "the namespace shop is in use: worker w1 has a lease for another ", "namespace rm shop"+args+url)
		out := expect(t, app.ExitFailed, ": stop its programs and wait for that time, or give --force", "namespace rm shop"+args+url)
		if out != "" {
			t.Errorf("it prints %q", out)
		}
	}
	if code, _, errs := typing(t, "", "namespace rm shop --dry-run"+url); code != 0 || !strings.Contains(errs, "worker w1 has a lease for another ") || !strings.Contains(errs, ": removing it needs --force") {
		t.Errorf("a dry run: exit %d, %q", code, errs)
	}
	expect(t, 0, "keys of shop", "namespace rm shop --yes --force"+url)
	if n := count(t, rdb); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// A signal ends the command soon. The next one finishes it, and until then nobody uses the rest.
func TestAnInterruptedRemovalIsFinished(t *testing.T) {
	rdb, url := database(t)
	url = " --redis " + url
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop"})
	for range 3 {
		pipe := rdb.Pipeline()
		for i := range 3000 {
			pipe.Set(t.Context(), fmt.Sprint("shop:{0}:spec:0-", i), "x", 0)
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, interrupt := context.WithCancel(t.Context())
	var errs bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"curfew"}, strings.Fields("namespace rm shop --yes --rate 100"+url)...), io.Discard, &errs)
	}()
	await.Until(t, "some keys are removed", func() bool { return count(t, rdb) < 3000 })
	interrupt()
	if code := await.Receive(t, ended, "the command ends"); code != app.ExitInterrupted ||
		!strings.Contains(errs.String(), "of shop removed, and no program can use the rest; `curfew namespace rm shop` removes it") || count(t, rdb) == 0 {
		t.Errorf("exit %d, %q; %d keys are left", code, &errs, count(t, rdb))
	}
	if _, err := q.Enqueue(t.Context(), queue.Task{Kind: "k"}); err == nil {
		t.Error("a program enqueued into the rest")
	}
	expect(t, 0, "is being removed: `curfew namespace rm shop` finishes that", "namespace ls"+url)
	expect(t, app.ExitFailed, "is being removed: run `curfew namespace rm shop` to finish that", "namespace create shop"+url)
	expect(t, 0, "keys of shop", "namespace rm shop --yes"+url)
	if n := count(t, rdb); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	expect(t, 0, "created", "namespace create shop"+url)
}

func TestADefaultTimeoutOfANamespace(t *testing.T) {
	rdb, url := database(t)
	url = " --redis " + url
	expect(t, 0, "shop  created: 2 partitions, events terminal, 64 MiB of events a partition, figures on, default timeout 1h", "namespace create shop --partitions 2 --default-timeout 1h"+url)
	expect(t, app.ExitFailed, "default timeout: it has 1h, not 2h", "namespace create shop --default-timeout 2h"+url)
	q := queuetest.Open(t, rdb, queue.Config{Namespace: "shop"})
	for range 2 {
		if r := queuetest.Enqueue(t, q, queue.Task{}); r.Deadline.IsZero() {
			t.Errorf("%s has no deadline", r.ID)
		}
	}
	if line := jsonLines(t, expect(t, 0, "", "namespace ls shop -o json"+url))[0]; line["default_timeout_ms"] != 3600000.0 {
		t.Errorf("%v", line)
	}
	rdb.Del(t.Context(), "shop:{1}") // an earlier create was interrupted
	expect(t, 0, "shop  exists: 2 partitions", "namespace create shop"+url)
	if ms := rdb.HGet(t.Context(), "shop:{1}", "default_timeout_ms").Val(); ms != "3600000" {
		t.Errorf("the partition that was missing has a default timeout of %q ms", ms)
	}
	expect(t, 0, "figures on, default timeout 1d (before: events terminal, 64 MiB, figures on, default timeout 1h)", "namespace set shop --default-timeout 1d"+url)
	expect(t, app.ExitFailed, "default timeout: it has 1d, not none", "namespace create shop --default-timeout none"+url)
	for _, command := range []string{"set", "create"} { // one reader of the flag
		for word, want := range map[string]string{"soon": `"soon"`, "-1h": "negative", "0s": "must not be 0: write a time of 1ms or more, such as 1h, or none", "1us": "1ms", "": "must not be 0"} {
			expect(t, app.ExitUsage, want, "namespace "+command+" shop --default-timeout="+word+url)
		}
	}
	expect(t, app.ExitUsage, "namespace set needs --events, --event-mib, --figures or --default-timeout", "namespace set shop"+url)
	line := jsonLines(t, expect(t, 0, "", "namespace set shop --default-timeout none -o json"+url))[0]
	if line["default_timeout_ms"] != nil || line["changed"] != true {
		t.Errorf("%v", line)
	}
	if r := queuetest.Enqueue(t, q, queue.Task{}); !r.Deadline.IsZero() {
		t.Errorf("%s has a deadline", r.ID)
	}
}
