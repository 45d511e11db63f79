package main

import (
	"strings"
	"testing"
	"time"

	"github.com/curfew-dev/curfew/internal/test/await"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/queue"
)

func TestDeadlinesAreCounted(t *testing.T) {
	q, url := namespace(t, 3) // without deadlines
	at := " --redis " + url
	if out := expect(t, 0, "", "deadlines"+at); out != "0 deadlines within 1m; 0 later, 0 overdue\n" {
		t.Errorf("without deadlines: %q", out)
	}
	for name, spans := range map[string][]time.Duration{
		"mail":   {115 * time.Second, 116 * time.Second, 117 * time.Second, 295 * time.Second},
		"render": {235 * time.Second, 2 * time.Hour},
	} {
		for _, d := range spans {
			queuetest.Enqueue(t, q, queue.Task{Queue: name, Timeout: d})
		}
	}
	late := queuetest.Enqueue(t, q, queue.Task{Queue: "mail", Timeout: time.Millisecond}).ID
	await.Until(t, "a task is overdue", func() bool {
		r, err := q.Get(t.Context(), late)
		return err == nil && r.Overdue
	})

	out := expect(t, 0, "", "deadlines --buckets 5"+at)
	want := "5 deadlines within 5m; 1 later, 1 overdue\n" +
		"      +0s          0\n" +
		"      +1m          3  ########################################\n" +
		"      +2m          0\n" +
		"      +3m          1  #############\n" +
		"      +4m          1  #############\n"
	if out != want {
		t.Errorf("deadlines prints\n%s\nwant\n%s", out, want)
	}
	out = expect(t, 0, "", "deadlines --buckets 5 --within 5m --by queue"+at)
	want = "5 deadlines within 5m; 1 later, 1 overdue\n" +
		"queue    deadlines  now +5m\n" +
		"mail             4  .█..▃\n" +
		"render           1  ...█.\n"
	if out != want {
		t.Errorf("by queue it prints\n%s\nwant\n%s", out, want)
	}
	line := jsonLines(t, expect(t, 0, "", "deadlines --within 5m --buckets 5 -o json"+at))[0]
	counts := line["counts"].([]any)
	if line["past"] != 1.0 || line["later"] != 1.0 || line["within_ms"] != 300000.0 || len(counts) != 5 || counts[1].(map[string]any)["count"] != 3.0 {
		t.Errorf("%v", line)
	}
	lines := jsonLines(t, expect(t, 0, "", "deadlines --within 1d --by queue -o json"+at))
	if len(lines) != 2 || lines[0]["past"] != nil || lines[0]["queue"] != "mail" || lines[1]["counts"].([]any)[0].(map[string]any)["count"] != 2.0 {
		t.Errorf("%v", lines)
	}
	code, _, errs := typing(t, "", "deadlines --by queue --limit 2"+at)
	if code != 0 || errs != "only the first 2 deadlines were read: read more with --limit\n" {
		t.Errorf("exit %d, %q", code, errs)
	}

	out = expect(t, 0, "", "deadlines --overdue"+at)
	if words := strings.Fields(row(out, late)); len(words) != 6 || words[1] != "k" || words[2] != "mail" || words[3] != "PENDING" || strings.Count(out, "\n") != 2 {
		t.Errorf("overdue: %s", out)
	}
	if out := expect(t, 0, "", "deadlines --overdue -o json"+at); !strings.HasPrefix(out, `[{"id":"`+late+`","kind":"k","queue":"mail","status":"PENDING","deadline_at":`) {
		t.Errorf("overdue: %s", out)
	}
}

// A deadline whose task has no record any more is not one of all queues.
func TestDeadlinesOfTasksWithoutARecord(t *testing.T) {
	q, url := namespace(t, 0)
	id := queuetest.Enqueue(t, q, queue.Task{Queue: "mail", Timeout: time.Hour}).ID
	p, err := queue.PartitionOf(id)
	if err == nil {
		err = q.Client().Del(t.Context(), q.Root(p)+":spec:"+id).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := jsonLines(t, expect(t, 0, "", "deadlines --within 2h --by queue -o json --redis "+url))
	if len(lines) != 1 || lines[0]["queue"] != "" || lines[0]["past"] != nil || lines[0]["later"] != nil {
		t.Errorf("%v", lines)
	}
	if line := jsonLines(t, expect(t, 0, "", "deadlines --within 2h -o json --redis "+url))[0]; line["queue"] != nil || line["past"] != 0.0 {
		t.Errorf("of all queues: %v", line)
	}
}

func TestDeadlinesOfACentury(t *testing.T) {
	q, url := namespace(t, 0)
	queuetest.Enqueue(t, q, queue.Task{Timeout: time.Hour})
	out := expect(t, 0, "", "deadlines --within 36500d --buckets 4 --redis "+url)
	if !strings.HasSuffix(out, "  +18250d          0\n  +27375d          0\n") {
		t.Errorf("it prints %s", out)
	}
}
