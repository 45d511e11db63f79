package inspect_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/curfew-dev/curfew/inspect"
	"github.com/curfew-dev/curfew/internal/claim"
	"github.com/curfew-dev/curfew/internal/test/queuetest"
	"github.com/curfew-dev/curfew/internal/test/redistest"
	"github.com/curfew-dev/curfew/queue"
	"github.com/curfew-dev/curfew/refusal"
)

// paged returns the lines of a whole export, read in pages of n lines. Each line is as ExportTo writes it.
func paged(tb testing.TB, q *queue.Queue, n int) []string {
	tb.Helper()
	var lines []string
	for page := ""; ; {
		told, err := inspect.Export(context.Background(), q, page, n)
		if err != nil {
			tb.Fatal(err)
		}
		for _, line := range told.Lines {
			var text strings.Builder
			encoder := json.NewEncoder(&text)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(line); err != nil {
				tb.Fatal(err)
			}
			if line.Type != "namespace" && line.Partition != told.Partition {
				tb.Errorf("a page of partition %d has the line %s", told.Partition, text.String())
			}
			lines = append(lines, strings.TrimSuffix(text.String(), "\n"))
		}
		if page = told.Next; page == "" {
			return lines
		}
	}
}

// settled returns the lines in sorted order, without read_at.
func settled(lines []string) []string {
	var all []string
	for _, line := range lines {
		before, after, found := strings.Cut(line, `,"read_at":`)
		if found {
			_, after, _ = strings.Cut(after, ",")
			line = before + "," + after
		}
		all = append(all, line)
	}
	slices.Sort(all)
	return all
}

func decoded(tb testing.TB, line string) map[string]any {
	tb.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(line), &o); err != nil {
		tb.Fatalf("%v: %s", err, line)
	}
	return o
}

func TestAnEmptyNamespaceIsExported(t *testing.T) {
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		lines := queuetest.Exported(t, q)
		if want := fmt.Sprintf(`{"type":"namespace","namespace":%q,"partitions":%d,"format":1}`, q.Namespace(), q.Partitions()); lines[0] != want {
			t.Errorf("the first line is %s, want %s", lines[0], want)
		}
		if len(lines) != 1+q.Partitions() {
			t.Errorf("exported %q, want one line for the namespace and one for each partition", lines)
		}
		for p, line := range lines[1:] {
			o := decoded(t, line)
			f := o["fields"].(map[string]any)
			if o["type"] != "partition" || o["partition"] != float64(p) || f["version"] != 2.0 || f["events"] != "terminal" || f["partitions"] != float64(q.Partitions()) || f["created_at"].(float64) < 1e12 {
				t.Errorf("the line of partition %d is %s", p, line)
			}
		}
	})
}

func TestPagesOfAnySizeGiveTheSameLines(t *testing.T) {
	redistest.NoRace(t, "one call at a time")
	queuetest.Everywhere(t, func(t *testing.T, q *queue.Queue) {
		populate(t, q)
		all := settled(queuetest.Exported(t, q))
		for _, n := range []int{1, 7, 500} {
			if got := settled(paged(t, q, n)); !slices.Equal(got, all) {
				t.Errorf("pages of %d lines give %d lines, want the same %d as ExportTo", n, len(got), len(all))
			}
		}
	})
}

// populate makes tasks so that most kinds of keys exist.
func populate(tb testing.TB, q *queue.Queue) {
	tb.Helper()
	ctx := context.Background()
	queuetest.Busy(tb, q, 6)
	var tasks []queue.Task
	for i := range 60 {
		tasks = append(tasks,
			queue.Task{Kind: "k", Queue: fmt.Sprintf("q%d", i%3), Payload: []byte(strings.Repeat("é\x00\"\\<", i)), Timeout: time.Hour, Priority: i % 4},
			queue.Task{Kind: "k", Delay: time.Hour, IdempotencyKey: fmt.Sprintf("key %d", i), QueueTimeout: time.Hour, Headers: map[string]string{"a": "b"}})
	}
	receipts, err := q.EnqueueAll(ctx, tasks)
	if err != nil {
		tb.Fatal(err)
	}
	for p := range q.Partitions() {
		trip, err := claim.Of(q).Fetch(ctx, p, "holder", claim.Ask{N: 5, Seq: 7, Lease: time.Hour, Quotas: []claim.Quota{{Queue: "q1", N: 5}}})
		if err != nil {
			tb.Fatal(err)
		}
		for i, c := range trip.Claims {
			queuetest.Enqueue(tb, q, queue.Task{ID: c.ID + ".child"})
			if i%2 == 0 {
				if _, err := claim.Of(q).Settle(ctx, p, "holder", queue.NewCall(), []queue.Outcome{{ID: c.ID, Epoch: c.Epoch, Verb: queue.Fail, Error: "no\xffway", Code: 3}}, claim.Ask{}); err != nil {
					tb.Fatal(err)
				}
			}
		}
	}
	if _, err := q.Cancel(ctx, receipts[1].ID, "not wanted"); err != nil {
		tb.Fatal(err)
	}
}

func TestPayloadAndResultAreUnchangedInJSON(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		for i, content := range [][]byte{nil, []byte("text"), []byte("\x00 é   </script> \" \\ 😀"), all, []byte("\xff"), []byte("42")} {
			line := fmt.Sprintf("q%d", i)
			id := queuetest.Enqueue(t, q, queue.Task{Queue: line, Payload: content}).ID
			w := &queuetest.Taker{Q: q, Worker: line}
			w.Settle(t, queue.Outcome{ID: id, Epoch: w.Take(t, id, line).Epoch, Verb: queue.Complete, Result: content})
			i := slices.IndexFunc(queuetest.Exported(t, q), func(l string) bool { return strings.Contains(l, `"id":"`+id+`"`) })
			o := decoded(t, queuetest.Exported(t, q)[i])
			f := o["fields"].(map[string]any)
			payload, result := field(t, o, "payload"), field(t, f, "result")
			if _, there := o["payload"]; there && content == nil || !bytes.Equal(payload, content) || !bytes.Equal(result, content) {
				t.Errorf("payload and result %q are exported as %q, %q", content, payload, result)
			}
			if f["status"] != "COMPLETED" || f["epoch"] != 1.0 || f["completed_at"].(float64) < 1e12 || o["overdue"] != false || o["read_at"].(float64) < 1e12 {
				t.Errorf("the task is exported as %v", o)
			}
		}
	})
}

// field returns the value of a field that may be in base64.
func field(tb testing.TB, o map[string]any, name string) []byte {
	tb.Helper()
	if s, there := o[name].(string); there {
		return []byte(s)
	}
	encoded, _ := o[name+"_base64"].(string)
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		tb.Errorf("%s_base64: %v", name, err)
	}
	return b
}

func TestUnknownAndBrokenKeysAreExported(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		ctx := context.Background()
		q := queuetest.Open(t, rdb, queue.Config{Namespace: "a"})
		other := queuetest.Open(t, rdb, queue.Config{Namespace: "ab"})
		queuetest.Enqueue(t, other, queue.Task{})
		root := q.Root(0)
		if _, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, root+":spec:0-NEWER", "k q 12 - -\npriority=3\n\np", 0)
			p.Set(ctx, root+":state:0-NEWER", "PENDING - - - 3 - -\nwarn_at=12\ncolour:6\n\ngr\nn=1", 0)
			p.Set(ctx, root+":payload:0-ORPHAN", "\xff", 0)
			p.Set(ctx, root+":state:0-ALONE", "PENDING", 0)
			p.Set(ctx, root+":spec:0-RUINED", "k q 12", 0)
			p.Set(ctx, root+":spec:0-TWISTED", "k q 12 - -\n\n", 0)
			p.RPush(ctx, root+":state:0-TWISTED", "l")
			p.ZAdd(ctx, root+":throttled", redis.Z{Score: 1.5, Member: "x\xff"}, redis.Z{Score: 1 << 52, Member: "y"})
			p.SAdd(ctx, root+":strange:with:colons", "m")
			p.RPush(ctx, root+":", "nameless")
			p.HSet(ctx, root+":queue:\xff", "running", "x")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		lines := settled(queuetest.Exported(t, q))
		want := []string{
			`{"type":"task","partition":0,"id":"0-NEWER","overdue":false,"payload":"p","fields":{"colour":"gr\nn=1","created_at":12,"kind":"k","priority":3,"queue":"q","retries":3,"status":"PENDING","warn_at":12}}`,
			`{"type":"index","partition":0,"index":"payload","of":"0-ORPHAN","kind":"string","value_base64":"/w=="}`,
			`{"type":"index","partition":0,"index":"state","of":"0-ALONE","kind":"string","value":"PENDING"}`,
			`{"type":"index","partition":0,"index":"state","of":"0-TWISTED","kind":"list","member":"l","place":0}`,
			`{"type":"index","partition":0,"index":"throttled","kind":"zset","member_base64":"eP8=","score":1.5,"place":0}`,
			`{"type":"index","partition":0,"index":"throttled","kind":"zset","member":"y","score":4503599627370496,"place":1}`,
			`{"type":"index","partition":0,"index":"strange","of":"with:colons","kind":"set","member":"m"}`,
			`{"type":"index","partition":0,"index":"","kind":"list","member":"nameless","place":0}`,
			`{"type":"queue","partition":0,"queue_base64":"/w==","fields":{"running":"x"}}`,
		}
		for _, line := range want {
			if !slices.Contains(lines, line) {
				t.Errorf("the export does not have the line %s", line)
			}
		}
		broken := 0
		for _, l := range lines {
			if strings.HasPrefix(l, `{"type":"broken","partition":0,"key":"task:0-TWISTED","error":"`) && strings.Contains(l, "WRONGTYPE") ||
				strings.HasPrefix(l, `{"type":"broken","partition":0,"key":"task:0-RUINED","error":"`) && strings.Contains(l, "its spec cannot be read") {
				broken++
			}
		}
		if len(lines) != len(want)+4 || broken != 2 { // namespace, partition, the broken ones
			t.Errorf("exported\n%s\nwant these %d, the namespace, the partition and two broken tasks", strings.Join(lines, "\n"), len(want))
		}
	})
}

func TestAnInvalidPageIsRefused(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q, ctx := queuetest.Open(t, rdb, queue.Config{Partitions: 2}), context.Background()
		token := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
		for _, test := range []struct {
			page string
			n    int
			want string
		}{
			{"", 0, "n 0 must be 1 to 10000"},
			{"", 10_001, "n 10001 must be"},
			{"x", 1, `page "x" is not valid: it must be "" for the first`},
			{"?", 1, "is not valid"},
			{token("[]"), 1, "is not valid"},
			{token(`{"p":-1}`), 1, "is for partition -1, and this namespace has 2 partitions"},
			{token(`{"p":2}`), 1, "is for partition 2, and this namespace has 2 partitions"},
			{token(`{"p":1e3}`), 1, "is"},
			{token(`{"p":0,"g":9}`), 1, "is not valid"},
		} {
			_, err := inspect.Export(ctx, q, test.page, test.n)
			if !errors.Is(err, refusal.ErrInvalid) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Export(%q, %d) = %v, want %q", test.page, test.n, err, test.want)
			}
		}
		// A page that another program made up reads nothing outside of the namespace.
		if err := rdb.Set(ctx, "secret", "s", 0).Err(); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"secret", "../secret", "", ":secret", "*"} {
			page, err := inspect.Export(ctx, q, token(`{"p":0,"g":3,"k":[{"n":"`+name+`","t":"string"},{"n":"`+name+`","t":"zset"}],"f":18446744073709551615}`), 10)
			if err != nil && !strings.Contains(err.Error(), "begin the export again") || len(page.Lines) != 0 {
				t.Errorf("a page made up for %q gives %v, %v, want no lines", name, page, err)
			}
		}
	})
}

func TestAPageIsJSON(t *testing.T) {
	redistest.Both(t, func(t *testing.T, rdb redis.UniversalClient) {
		q := queuetest.Open(t, rdb, queue.Config{})
		page, err := inspect.Export(context.Background(), q, "", 1)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(page)
		var got map[string]any
		if err != nil || json.Unmarshal(text, &got) != nil {
			t.Fatalf("%s, %v", text, err)
		}
		want := map[string]any{"partition": 0.0, "next": page.Next, "lines": []any{
			map[string]any{"type": "namespace", "namespace": "curfew", "partitions": 1.0, "format": 1.0}}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("a page is %s", text)
		}
	})
}
